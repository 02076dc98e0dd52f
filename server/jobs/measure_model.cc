#include "server/jobs/measure_model.h"

#include <string>
#include <utility>

#include "api/base/format.h"
#include "server/jobs/last_words.h"

namespace tandem::jobs {
namespace {

namespace fs = std::filesystem;

}  // namespace

Result<double> MeasureModel(const TrainingJob& job, const fs::path& model, const JobFolder& folder,
                            const JobOptions& options, const Clock& clock, const std::atomic<bool>& stop) {
  TrainerRun run{.job = job,
                 .model = model,
                 .folder = folder.measuring(),
                 .data_root = {},
                 .threads = ThreadsOf(job, options, options.fixed_threads),
                 .measure_only = true};
  // It is measured as it is: with its own head, and whatever its weights are called.
  run.job.replace_head.reset();
  run.job.trainable.clear();
  const std::string name = Format("measuring-{}", folder.path.filename().string());
  const Result<EndEvent> end = RunForLastWords(
      std::move(run), name, options, clock, [](const TrainerEvent&) {},
      [&]() -> Status {
        if (!stop.load()) return {};
        return Fail(ErrorCode::kUnavailable, "the server is stopping");
      });
  if (!end) return std::unexpected(end.error());
  if (end->outcome == TrainerOutcome::kFailed) return std::unexpected(end->error);
  if (!end->baseline) return Fail(ErrorCode::kInternal, "its trainer measured nothing");
  return *end->baseline;
}

}  // namespace tandem::jobs
