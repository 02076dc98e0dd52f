#include "server/jobs/job_need.h"

#include <algorithm>
#include <cmath>

#include "api/wire/json_document.h"
#include "runtimes/onnx/node_list.h"
#include "runtimes/onnx/onnx_file.h"

namespace tandem::jobs {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
// The program and its libraries, as far as they are touched.
constexpr std::uint64_t kTrainer = 192 * kMiB;
constexpr std::uint64_t kLibraries = 16 * kMiB;
constexpr std::uint64_t kMostOfExample = 128 * kMiB;
// No job has more; sums of such numbers do not overflow.
constexpr std::uint64_t kMost = std::uint64_t{1} << 48;

std::uint64_t States(const OptimizerSpec& optimizer) {
  if (optimizer.kind != OptimizerKind::kSgd) return 2;
  return optimizer.momentum > 0 ? 1 : 0;
}

std::uint64_t ExampleBytes(const ModelSize& model) {
  if (model.convolutions) return std::min(model.weight_bytes, kMostOfExample);
  constexpr double kFloat = sizeof(float);
  const double width = std::sqrt(static_cast<double>(model.weight_bytes) / kFloat) * kFloat;
  return static_cast<std::uint64_t>(std::min(width * static_cast<double>(model.nodes), static_cast<double>(kMost)));
}

}  // namespace

JobNeed GuessNeed(const TrainingJob& job, const ModelSize& model) {
  const std::uint64_t weights = std::min(model.weight_bytes, kMost / 16);
  const std::uint64_t states = States(job.optimizer);
  JobNeed need{.persistent = kTrainer + weights * (2 + states + 1 + states), .ephemeral = kLibraries};
  const auto batch = static_cast<std::uint64_t>(std::max<std::int64_t>(job.batch_size, 1));
  const std::uint64_t example = ExampleBytes(model);
  need.ephemeral += example > kMost / batch ? kMost : example * batch;
  if (!job.memory) return need;
  need.persistent = std::min(need.persistent, *job.memory);
  need.ephemeral = *job.memory - need.persistent;
  need.bounded = true;
  return need;
}

Result<JobNeed> GuessNeedOf(const TrainingJob& job, const std::filesystem::path& model) {
  TANDEM_ASSIGN(const OnnxFileInfo file, InspectOnnxFile(model));
  TANDEM_ASSIGN(const auto nodes, ListOnnxNodes(model));
  return GuessNeed(job, {.weight_bytes = file.tensor_bytes,
                         .nodes = nodes.size(),
                         .convolutions = std::ranges::any_of(
                             nodes, [](const OnnxNode& node) { return node.op.starts_with("Conv"); })});
}

JobNeed NeedWithin(const JobNeed& need, std::uint64_t free) {
  constexpr std::uint64_t kLeastPart = 16;
  const std::uint64_t rest = free > need.persistent ? free - need.persistent : 0;
  return {.persistent = need.persistent, .ephemeral = std::max(rest, need.ephemeral / kLeastPart)};
}

JobNeed NeedAsTold(std::uint64_t persistent, std::uint64_t ephemeral) {
  return {.persistent = std::min(persistent, kMost), .ephemeral = std::min(ephemeral, kMost)};
}

std::optional<JobNeed> NeedAsNoted(std::string_view memory) {
  const auto json = ParseStrictJson(memory);
  if (!json || !json->isObject()) return std::nullopt;
  const Json::Value& measured = (*json)["measured"];
  if (measured.isObject() && measured["persistent"].isUInt64() && measured["ephemeral"].isUInt64()) {
    return NeedAsTold(measured["persistent"].asUInt64(), measured["ephemeral"].asUInt64());
  }
  const Json::Value& estimate = (*json)["estimate"];
  if (!estimate.isObject() || !estimate["persistent"].isObject()) return std::nullopt;
  const Json::Value& total = estimate["persistent"]["total"];
  if (!total.isUInt64() || !estimate["ephemeral"].isUInt64()) return std::nullopt;
  return NeedAsTold(total.asUInt64(), estimate["ephemeral"].asUInt64());
}

JobNeed CorrectNeed(const JobNeed& promised, std::uint64_t peak, bool settled) {
  if (promised.bounded || peak == 0) return promised;
  // Small changes are not worth anybody's look.
  const std::uint64_t total = promised.total();
  const std::uint64_t wanted = peak + peak / 8;
  const bool less = settled && wanted < total - total / 16;
  if (peak <= total && !less) return promised;
  // What was seen does not tell P from E: more than P is E, and less has both in the proportion that was expected.
  JobNeed corrected{.persistent = promised.persistent};
  if (wanted < promised.persistent) {
    const double part = static_cast<double>(promised.persistent) / static_cast<double>(total);
    corrected.persistent = static_cast<std::uint64_t>(static_cast<double>(wanted) * part);
  }
  corrected.ephemeral = wanted - corrected.persistent;
  return corrected;
}

}  // namespace tandem::jobs
