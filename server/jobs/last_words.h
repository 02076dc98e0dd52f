#pragma once

#include <functional>

#include "api/base/result.h"
#include "api/wire/trainer_event.h"
#include "server/jobs/contained_trainer.h"

namespace tandem::jobs {

// Waits for the end of a trainer that is started for one answer: its last word, or why it has none. `note` is told of
// each event before; `go_on` is asked several times a second, and its error ends the wait, but not the trainer. On the
// thread that started it.
[[nodiscard]] Result<EndEvent> WaitForLastWords(ContainedTrainer& trainer,
                                                const std::function<void(const TrainerEvent&)>& note,
                                                const std::function<Status()>& go_on);

}  // namespace tandem::jobs
