#include "server/jobs/measure_model.h"

#include <chrono>
#include <optional>
#include <system_error>
#include <utility>
#include <variant>

#include <poll.h>

#include "server/jobs/trainer_process.h"
#include "server/trainer/run_file.h"

namespace tandem::jobs {
namespace {

namespace fs = std::filesystem;

constexpr int kTickMs = 100;

// The last word of a trainer; kUnavailable, and its end, when it is not to be waited for any more.
Result<EndEvent> WaitForEnd(TrainerProcess& trainer, std::chrono::milliseconds hang_limit, const Clock& clock,
                            const std::atomic<bool>& stop) {
  std::optional<EndEvent> end;
  std::uint64_t ops = 0;
  MonotonicTime alive_at = clock.Now();
  while (!stop.load()) {
    const auto exit = trainer.Poll();
    for (TrainerEvent& event : trainer.ReadEvents()) {
      if (auto* const last = std::get_if<EndEvent>(&event)) end = std::move(*last);
    }
    if (exit) {
      if (end) return *std::move(end);
      return Fail(ErrorCode::kInternal, "its trainer ended: {}", exit->Words());
    }
    if (const std::uint64_t now = trainer.board().Signs().ops; now != ops) {
      ops = now;
      alive_at = clock.Now();
    }
    if (clock.Now() - alive_at >= hang_limit) return Fail(ErrorCode::kInternal, "its trainer did nothing any more");
    pollfd events{.fd = trainer.events_fd(), .events = POLLIN, .revents = 0};
    // One that has said its last word is readable for ever.
    ::poll(trainer.silent() ? nullptr : &events, trainer.silent() ? 0 : 1, kTickMs);
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
                 .data_root = options.data_root,
                 .threads = job.threads > 0 ? job.threads : options.threads,
                 .measure_only = true};
  // It is measured as it is: with its own head, and whatever its weights are called.
  run.job.replace_head.reset();
  run.job.trainable.clear();
  TANDEM_TRY(WriteRunFile(run, place / "run.json"));
  TANDEM_ASSIGN(const auto trainer, TrainerProcess::Start({.program = options.trainer,
                                                           .run_file = place / "run.json",
                                                           .folder = place,
                                                           .memory = job.memory,
                                                           .idle = options.idle}));
  const Result<EndEvent> end = WaitForEnd(*trainer, options.hang_limit, clock, stop);
  fs::remove_all(place, ec);
  if (!end) return std::unexpected(end.error());
  if (end->outcome == TrainerOutcome::kFailed) return std::unexpected(end->error);
  if (!end->baseline) return Fail(ErrorCode::kInternal, "its trainer measured nothing");
  return *end->baseline;
}

}  // namespace tandem::jobs
