#include "server/jobs/estimate_job.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <system_error>
#include <utility>
#include <variant>

#include "api/base/format.h"
#include "server/jobs/last_words.h"

namespace tandem::jobs {
namespace {

namespace fs = std::filesystem;

// What a trainer needs to read a model: its file, what is parsed of it and the tensors that are made of that; beside
// what libraries need.
std::uint64_t BoundFor(const fs::path& model) {
  constexpr std::uint64_t kLibraries = std::uint64_t{1} << 30;
  constexpr std::uint64_t kCopies = 5;
  std::uint64_t bytes = 0;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(model.parent_path(), ec)) {
    if (entry.is_regular_file(ec)) bytes += entry.file_size(ec);
  }
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40;
  return kLibraries + kCopies * std::min(bytes, kMost);
}

// The bound is ours, and not the job's own.
Error InWords(const Error& error, std::uint64_t bound) {
  if (!error.message.starts_with("out of memory")) return error;
  return {ErrorCode::kTooLarge, Format("the model takes more memory to be read than the {} bytes that an estimate may "
                                       "have",
                                       bound)};
}

}  // namespace

Result<MemoryEstimate> EstimateJob(const TrainingJob& job, const fs::path& model, const JobOptions& options,
                                   const Clock& clock, const std::atomic<bool>& stop) {
  TrainerRun run{.job = job,
                 .model = model,
                 .folder = options.state / "estimating",
                 .data_root = {},
                 .threads = ThreadsOf(job, options, options.fixed_threads),
                 .estimate_only = true};
  const std::uint64_t bound = BoundFor(model);
  run.limit = bound;
  std::optional<MemoryEstimate> estimate;
  const auto note = [&](const TrainerEvent& event) {
    if (const auto* const told = std::get_if<EstimateEvent>(&event)) estimate = told->estimate;
  };
  const MonotonicTime until = clock.Now() + kEstimatePatience;
  const Result<EndEvent> end = RunForLastWords(std::move(run), "estimating", options, clock, note, [&]() -> Status {
    if (stop.load()) return Fail(ErrorCode::kUnavailable, "the server is stopping");
    if (clock.Now() < until) return {};
    return Fail(ErrorCode::kDeadlineExceeded, "the estimate took longer than {} s", kEstimatePatience.count());
  });
  if (!end) return std::unexpected(InWords(end.error(), bound));
  if (end->outcome == TrainerOutcome::kFailed) return std::unexpected(InWords(end->error, bound));
  if (!estimate) return Fail(ErrorCode::kInternal, "its trainer estimated nothing");
  return *std::move(estimate);
}

}  // namespace tandem::jobs
