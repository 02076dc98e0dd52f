#pragma once

#include "api/base/model_signature.h"
#include "api/base/result.h"
#include "api/wire/proto/model_config.pb.h"

namespace tandem::repository {

// Completes the configuration's inputs and outputs from the graph, or says how they contradict it; `signature` becomes
// what is served, in the graph's order. config.max_batch_size() is final. Pure.
[[nodiscard]] Status MatchTensors(const ModelSignature& graph, inference::ModelConfig& config,
                                  ModelSignature& signature);

}  // namespace tandem::repository
