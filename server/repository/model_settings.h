#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "api/base/model_signature.h"
#include "api/base/result.h"
#include "api/wire/proto/model_config.pb.h"
#include "colocation/servable.h"
#include "server/repository/layout.h"

namespace tandem::repository {

// The batch limit of a model whose configuration says nothing and whose graph names a batch. Triton takes 4 there; 32
// is where small models stop gaining from a larger batch on a CPU, and it is also the largest batch that one request
// may bring, which 4 would cut short for no reason. The batcher never waits for it: a derived model batches only what
// is already queued.
inline constexpr std::int64_t kDerivedMaxBatchSize = 32;

// A model as it will be served.
struct ModelSettings {
  inference::ModelConfig config;  // Completed: what the ModelConfig call answers.
  ModelSignature signature;       // As served, batch dimension included.
  BatchSettings batching;
  std::optional<std::chrono::microseconds> slo;
};

// Joins a checked configuration (see CheckConfig; it may be empty) with the graph. Pure.
//
// What the configuration leaves out comes from the graph. A configuration that lists neither inputs nor outputs and no
// max_batch_size leaves that out too; as soon as it lists a tensor, max_batch_size 0 means 0, since the file format
// cannot tell 0 from absent. Where both speak, the configuration may narrow the graph (a size for a variable
// dimension, fewer outputs) and an error names both sides otherwise.
[[nodiscard]] Result<ModelSettings> CompleteSettings(std::string_view model_name, const inference::ModelConfig& given,
                                                     const ModelSignature& graph, const ModelFile& file);

// What a version's file says of where it came from: the entries of its metadata that begin with kOriginPrefix. They
// become parameters of the configuration, in place of any of those names that it has: only the file knows.
inline constexpr std::string_view kOriginPrefix = "tandem.";
void NoteOrigin(const std::map<std::string, std::string>& metadata, inference::ModelConfig& config);
[[nodiscard]] std::map<std::string, std::string> OriginOf(const inference::ModelConfig& config);

// The version policy that holds: the one given, else latest 1.
[[nodiscard]] inference::ModelVersionPolicy CompletePolicy(const inference::ModelConfig& given);

}  // namespace tandem::repository
