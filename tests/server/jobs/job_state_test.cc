#include "server/jobs/job_state.h"

#include <map>
#include <set>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem::jobs {
namespace {

using enum JobState;
using testing::HasSubstr;

// What a job may do, written down a second time on purpose: by state, with everything that leads out of it.
const std::map<JobState, std::map<JobAction, JobState>>& Expected() {
  static const std::map<JobState, std::map<JobAction, JobState>> table = {
      {kQueued,
       {{JobAction::kAdmit, kAdmitted},
        {JobAction::kPause, kPaused},
        {JobAction::kFail, kFailed},
        {JobAction::kCancel, kCancelled}}},
      {kAdmitted,
       {{JobAction::kStart, kRunning},
        {JobAction::kPause, kPaused},
        {JobAction::kRequeue, kQueued},
        {JobAction::kRetry, kQueued},
        {JobAction::kFail, kFailed},
        {JobAction::kCancel, kCancelled}}},
      {kRunning,
       {{JobAction::kPause, kPaused},
        {JobAction::kRequeue, kQueued},
        {JobAction::kRetry, kQueued},
        {JobAction::kSucceed, kSucceeded},
        {JobAction::kFail, kFailed},
        {JobAction::kCancel, kCancelled}}},
      {kPaused,
       {{JobAction::kResume, kRunning},
        {JobAction::kRequeue, kQueued},
        {JobAction::kRetry, kQueued},
        {JobAction::kFail, kFailed},
        {JobAction::kCancel, kCancelled}}},
      {kSucceeded, {}},
      {kFailed, {}},
      {kCancelled, {}},
  };
  return table;
}

TEST(JobState, EveryActionInEveryStateDoesWhatTheTableSays) {
  for (const JobState state : kJobStates) {
    for (const JobAction action : kJobActions) {
      const auto& legal = Expected().at(state);
      const Result<JobState> next = NextState(state, action);
      const auto expected = legal.find(action);
      const std::string what = std::string(JobStateName(state)) + " " + std::string(JobActionName(action));
      if (expected != legal.end()) {
        ASSERT_TRUE(next) << what;
        EXPECT_EQ(*next, expected->second) << what;
        continue;
      }
      ASSERT_FALSE(next) << what;
      EXPECT_EQ(next.error().code, ErrorCode::kConflict) << what;
      EXPECT_THAT(next.error().message, HasSubstr("the job is " + std::string(JobStateName(state)))) << what;
      EXPECT_THAT(next.error().message, HasSubstr("'" + std::string(JobActionName(action)) + "'")) << what;
    }
  }
}

TEST(JobState, NothingLeadsOutOfAnEnd) {
  for (const JobState state : kJobStates) {
    EXPECT_EQ(HasEnded(state), Expected().at(state).empty()) << JobStateName(state);
  }
}

TEST(JobState, ARefusalSaysWhereTheActionIsPossible) {
  EXPECT_THAT(NextState(kSucceeded, JobAction::kPause).error().message,
              HasSubstr("that is possible while it is: queued, admitted, running"));
}

TEST(JobState, NamesAreDistinctAndReadBack) {
  std::set<std::string_view> names;
  for (const JobState state : kJobStates) {
    EXPECT_TRUE(names.insert(JobStateName(state)).second);
    EXPECT_EQ(ParseJobState(JobStateName(state)), state);
  }
  for (const JobAction action : kJobActions) EXPECT_TRUE(names.insert(JobActionName(action)).second);
  EXPECT_EQ(ParseJobState("Queued"), std::nullopt);
  EXPECT_EQ(ParseJobState(""), std::nullopt);
}

}  // namespace
}  // namespace tandem::jobs
