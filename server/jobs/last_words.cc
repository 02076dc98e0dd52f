#include "server/jobs/last_words.h"

#include <optional>
#include <utility>
#include <variant>

#include <poll.h>

namespace tandem::jobs {
namespace {

constexpr int kTickMs = 100;

}  // namespace

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

}  // namespace tandem::jobs
