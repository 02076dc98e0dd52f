#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/base/cancel_token.h"
#include "api/base/clock.h"
#include "api/base/result.h"
#include "api/base/tensor.h"
#include "runtimes/onnx/ort_profile.h"
#include "server/infer/inference_service.h"
#include "server/repository/model_repository.h"

namespace tandem {

struct ProfileRequest {
  std::string model;
  std::string version;                  // Empty: the newest.
  std::optional<std::uint64_t> runs;    // None: kUsualRuns, or as many as there is room for.
  std::map<std::string, Shape> shapes;  // By input, batch dimension included.
};

// What the nodes of a model take.
struct ModelProfile {
  std::string model;
  std::string version;
  std::vector<TensorSpec> inputs;  // That it ran on; no dimension varies.
  SessionProfile session;
};

// Loads a served version once more, with notes of what every node takes, runs it a few times and reads them. Each run
// waits for its turn behind all requests, and trainers make way for it as for one. Its memory is bounded by
// kMostEvents. Thread-safe; whoever calls sees to it that there is one at a time.
class ModelProfiler {
 public:
  static constexpr std::uint64_t kUsualRuns = 10;
  static constexpr std::uint64_t kMostRuns = 1000;
  // Of nodes, in all runs: a kilobyte of memory each, and half as much on disk.
  static constexpr std::uint64_t kMostEvents = 50'000;
  // All runs with their waiting; after that those that were made must do.
  static constexpr std::chrono::seconds kTime{30};
  // All runs of a model with subgraphs, without waiting.
  static constexpr std::chrono::seconds kTimeWithSubgraphs{1};

  // Borrowed; all outlive it.
  ModelProfiler(const Clock& clock, const repository::ModelRepository& repository, InferenceService& inference)
      : clock_(clock), repository_(repository), inference_(inference) {}

  // Blocks, for as long as a load and the runs take. Errors as ModelRepository::Find(), or: kInvalidArgument for shapes
  // that do not fit, kTooLarge for more than can be noted, kUnavailable when no run was made in time. `cancel` ends it.
  [[nodiscard]] Result<ModelProfile> Profile(const ProfileRequest& request, CancelToken& cancel) const;

  // How many runs to make, beside the first that does not count. Pure.
  [[nodiscard]] static Result<std::uint64_t> FitRuns(std::optional<std::uint64_t> asked, std::uint64_t nodes);

 private:
  // How many runs ended well, beside the first.
  [[nodiscard]] Result<std::uint64_t> RunAll(const repository::ProfiledVersion& version,
                                             const std::vector<Tensor>& inputs, std::uint64_t runs,
                                             CancelToken& cancel) const;
  [[nodiscard]] Status RunOnce(const WorkItem& like) const;

  const Clock& clock_;
  const repository::ModelRepository& repository_;
  InferenceService& inference_;
};

}  // namespace tandem
