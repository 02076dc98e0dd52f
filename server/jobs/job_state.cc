#include "server/jobs/job_state.h"

#include <algorithm>
#include <string>
#include <utility>

namespace tandem::jobs {
namespace {

struct Transition {
  JobAction action;
  JobState from;
  JobState to;
};

// All that can happen to a job.
constexpr Transition kTransitions[] = {
    {JobAction::kAdmit, JobState::kQueued, JobState::kAdmitted},
    {JobAction::kStart, JobState::kAdmitted, JobState::kRunning},
    {JobAction::kPause, JobState::kQueued, JobState::kPaused},
    {JobAction::kPause, JobState::kAdmitted, JobState::kPaused},
    {JobAction::kPause, JobState::kRunning, JobState::kPaused},
    {JobAction::kResume, JobState::kPaused, JobState::kRunning},
    {JobAction::kRequeue, JobState::kAdmitted, JobState::kQueued},
    {JobAction::kRequeue, JobState::kRunning, JobState::kQueued},
    {JobAction::kRequeue, JobState::kPaused, JobState::kQueued},
    {JobAction::kRetry, JobState::kAdmitted, JobState::kQueued},
    {JobAction::kRetry, JobState::kRunning, JobState::kQueued},
    {JobAction::kRetry, JobState::kPaused, JobState::kQueued},
    {JobAction::kSucceed, JobState::kRunning, JobState::kSucceeded},
    {JobAction::kFail, JobState::kQueued, JobState::kFailed},
    {JobAction::kFail, JobState::kAdmitted, JobState::kFailed},
    {JobAction::kFail, JobState::kRunning, JobState::kFailed},
    {JobAction::kFail, JobState::kPaused, JobState::kFailed},
    {JobAction::kCancel, JobState::kQueued, JobState::kCancelled},
    {JobAction::kCancel, JobState::kAdmitted, JobState::kCancelled},
    {JobAction::kCancel, JobState::kRunning, JobState::kCancelled},
    {JobAction::kCancel, JobState::kPaused, JobState::kCancelled},
};

constexpr std::array<std::pair<JobState, std::string_view>, kJobStates.size()> kStateNames = {
    {{JobState::kQueued, "queued"},
     {JobState::kAdmitted, "admitted"},
     {JobState::kRunning, "running"},
     {JobState::kPaused, "paused"},
     {JobState::kSucceeded, "succeeded"},
     {JobState::kFailed, "failed"},
     {JobState::kCancelled, "cancelled"}}};

constexpr std::array<std::pair<JobAction, std::string_view>, kJobActions.size()> kActionNames = {
    {{JobAction::kAdmit, "admit"},
     {JobAction::kStart, "start"},
     {JobAction::kPause, "pause"},
     {JobAction::kResume, "resume"},
     {JobAction::kRequeue, "requeue"},
     {JobAction::kRetry, "retry"},
     {JobAction::kSucceed, "succeed"},
     {JobAction::kFail, "fail"},
     {JobAction::kCancel, "cancel"}}};

}  // namespace

std::string_view JobStateName(JobState state) {
  return std::ranges::find(kStateNames, state, &std::pair<JobState, std::string_view>::first)->second;
}

std::string_view JobActionName(JobAction action) {
  return std::ranges::find(kActionNames, action, &std::pair<JobAction, std::string_view>::first)->second;
}

std::optional<JobState> ParseJobState(std::string_view name) {
  const auto found = std::ranges::find(kStateNames, name, &std::pair<JobState, std::string_view>::second);
  if (found == kStateNames.end()) return std::nullopt;
  return found->first;
}

bool HasEnded(JobState state) {
  return std::ranges::none_of(kTransitions, [&](const Transition& row) { return row.from == state; });
}

Result<JobState> NextState(JobState state, JobAction action) {
  std::string possible;
  for (const Transition& row : kTransitions) {
    if (row.action != action) continue;
    if (row.from == state) return row.to;
    possible += (possible.empty() ? "" : ", ") + std::string(JobStateName(row.from));
  }
  return Fail(ErrorCode::kConflict, "the job is {}, which does not allow '{}'; that is possible while it is: {}",
              JobStateName(state), JobActionName(action), possible);
}

}  // namespace tandem::jobs
