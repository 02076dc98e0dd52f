#include "server/jobs/measure_model.h"

#include <string>
#include <system_error>
#include <utility>

#include "api/base/format.h"
#include "server/jobs/last_words.h"

namespace tandem::jobs {
namespace {

namespace fs = std::filesystem;

}  // namespace

Result<double> MeasureModel(const TrainingJob& job, const fs::path& model, const JobFolder& folder,
                            const JobOptions& options, const Clock& clock, const std::atomic<bool>& stop) {
  const fs::path place = folder.measuring();
  std::error_code ec;
  fs::remove_all(place, ec);
  fs::create_directories(place, ec);
  if (ec) return Fail(ErrorCode::kInternal, "'{}' cannot be made: {}", place.string(), ec.message());
  TrainerRun run{.job = job,
                 .model = model,
                 .folder = place,
                 .data_root = {},
                 .threads = ThreadsOf(job, options, options.fixed_threads),
                 .measure_only = true};
  // It is measured as it is: with its own head, and whatever its weights are called.
  run.job.replace_head.reset();
  run.job.trainable.clear();
  const std::string name = Format("measuring-{}", folder.path.filename().string());
  TANDEM_ASSIGN(auto trainer, ContainedTrainer::Start(std::move(run), name, options, clock));
  const Result<EndEvent> end = WaitForLastWords(
      *trainer, [](const TrainerEvent&) {},
      [&]() -> Status {
        if (!stop.load()) return {};
        return Fail(ErrorCode::kUnavailable, "the server is stopping");
      });
  trainer.reset();  // One that was given up still writes there.
  fs::remove_all(place, ec);
  if (!end) return std::unexpected(end.error());
  if (end->outcome == TrainerOutcome::kFailed) return std::unexpected(end->error);
  if (!end->baseline) return Fail(ErrorCode::kInternal, "its trainer measured nothing");
  return *end->baseline;
}

}  // namespace tandem::jobs
