#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "api/base/result.h"

namespace tandem::jobs {

enum class JobState {
  kQueued,    // Waits for memory, or for its next attempt.
  kAdmitted,  // Has its memory; the trainer is being started.
  kRunning,   // The trainer works, or waits at the gate.
  kPaused,    // Told to wait, with or without a trainer.
  kSucceeded,
  kFailed,
  kCancelled,
};

enum class JobAction {
  kAdmit,    // Memory was found.
  kStart,    // The trainer is up.
  kPause,    // Somebody asked for it.
  kResume,   // The trainer of a paused job goes on.
  kRequeue,  // Back in line through no fault of the job: the server was restarted, its memory was taken, or it was
             // paused without a trainer.
  kRetry,    // Back in line after its trainer failed; counts, and waits for the back-off.
  kSucceed,
  kFail,
  kCancel,
};

inline constexpr std::array kJobStates = {JobState::kQueued,   JobState::kAdmitted,  JobState::kRunning,
                                          JobState::kPaused,   JobState::kSucceeded, JobState::kFailed,
                                          JobState::kCancelled};
inline constexpr std::array kJobActions = {JobAction::kAdmit,   JobAction::kStart,   JobAction::kPause,
                                           JobAction::kResume,  JobAction::kRequeue, JobAction::kRetry,
                                           JobAction::kSucceed, JobAction::kFail,    JobAction::kCancel};

// "queued", "admit": as the API and the database spell them.
[[nodiscard]] std::string_view JobStateName(JobState state);
[[nodiscard]] std::string_view JobActionName(JobAction action);
[[nodiscard]] std::optional<JobState> ParseJobState(std::string_view name);

// Whether nothing can change the state any more.
[[nodiscard]] bool HasEnded(JobState state);

// The state after the action; kConflict, naming both and where the action is possible, when it is not possible now.
// Pure.
[[nodiscard]] Result<JobState> NextState(JobState state, JobAction action);

}  // namespace tandem::jobs
