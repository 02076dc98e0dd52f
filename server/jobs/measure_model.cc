#include "server/jobs/measure_model.h"

#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <variant>

#include <poll.h>

#include "api/base/format.h"
#include "server/jobs/contained_trainer.h"

namespace tandem::jobs {
namespace {

namespace fs = std::filesystem;

constexpr int kTickMs = 100;

// The last word of a trainer; why it has none else. kUnavailable when it is not to be waited for any more.
Result<EndEvent> WaitForEnd(ContainedTrainer& trainer, const std::atomic<bool>& stop) {
  TrainerProcess& process = trainer.process();
  std::optional<EndEvent> end;
  while (!stop.load()) {
    const auto exit = process.Poll();
    for (TrainerEvent& event : process.ReadEvents()) {
      if (auto* const last = std::get_if<EndEvent>(&event)) end = std::move(*last);
    }
    if (exit) {
      if (end && !trainer.killed()) return *std::move(end);
      return std::unexpected(trainer.WhyEnded(*exit));
    }
    trainer.Watch();
    pollfd events{.fd = process.events_fd(), .events = POLLIN, .revents = 0};
    // One that has said its last word is readable for ever.
    ::poll(process.silent() ? nullptr : &events, process.silent() ? 0 : 1, kTickMs);
  }
  return Fail(ErrorCode::kUnavailable, "the server is stopping");
}

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
  const Result<EndEvent> end = WaitForEnd(*trainer, stop);
  trainer.reset();  // One that was given up still writes there.
  fs::remove_all(place, ec);
  if (!end) return std::unexpected(end.error());
  if (end->outcome == TrainerOutcome::kFailed) return std::unexpected(end->error);
  if (!end->baseline) return Fail(ErrorCode::kInternal, "its trainer measured nothing");
  return *end->baseline;
}

}  // namespace tandem::jobs
