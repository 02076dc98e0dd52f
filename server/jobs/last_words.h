#pragma once

#include <functional>
#include <string>

#include "api/base/result.h"
#include "api/wire/trainer_event.h"
#include "server/jobs/contained_trainer.h"

namespace tandem::jobs {

// Starts a trainer for one answer and waits for its end: its last word, or why it has none. Its folder (`run.folder`)
// is made anew, and removed afterwards. `note` is told of each event before; `go_on` is asked several times a second,
// and its error ends the wait and the trainer. The calling thread must outlive the call.
[[nodiscard]] Result<EndEvent> RunForLastWords(TrainerRun run, const std::string& name, const JobOptions& options,
                                               const Clock& clock, const std::function<void(const TrainerEvent&)>& note,
                                               const std::function<Status()>& go_on);

}  // namespace tandem::jobs
