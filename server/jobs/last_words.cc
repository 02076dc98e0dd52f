#include "server/jobs/last_words.h"

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <variant>

#include <poll.h>

#include "api/base/format.h"

namespace tandem::jobs {
namespace {

constexpr int kTickMs = 100;

Result<EndEvent> WaitForLastWords(ContainedTrainer& trainer, const std::function<void(const TrainerEvent&)>& note,
                                  const std::function<Status()>& go_on) {
  TrainerProcess& process = trainer.process();
  std::optional<EndEvent> end;
  for (;;) {
    TANDEM_TRY(go_on());
    const auto exit = process.Poll();
    for (TrainerEvent& event : process.ReadEvents()) {
      if (auto* const last = std::get_if<EndEvent>(&event)) {
        end = std::move(*last);
      } else {
        note(event);
      }
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
}

}  // namespace

Result<EndEvent> RunForLastWords(TrainerRun run, const std::string& name, const JobOptions& options, const Clock& clock,
                                 const std::function<void(const TrainerEvent&)>& note,
                                 const std::function<Status()>& go_on) {
  const std::filesystem::path place = run.folder;
  std::error_code ec;
  std::filesystem::remove_all(place, ec);
  std::filesystem::create_directories(place, ec);
  if (ec) return Fail(ErrorCode::kInternal, "'{}' cannot be made: {}", place.string(), ec.message());
  TANDEM_ASSIGN(auto trainer, ContainedTrainer::Start(std::move(run), name, options, clock));
  Result<EndEvent> end = WaitForLastWords(*trainer, note, go_on);
  trainer.reset();  // One that was given up still writes there.
  std::filesystem::remove_all(place, ec);
  return end;
}

}  // namespace tandem::jobs
