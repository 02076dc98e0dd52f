#include "server/infer/outcome.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

using namespace std::chrono_literals;

constexpr MonotonicTime kDeadline{1h};
constexpr MonotonicTime kEarly = kDeadline - 1ns;
constexpr MonotonicTime kLate = kDeadline + 1ns;

SloVerdict Verdict(ErrorCode code, MonotonicTime now, std::optional<MonotonicTime> deadline = kDeadline) {
  const Error error{code, "no"};
  return VerdictOf(&error, deadline, now);
}

TEST(Outcome, AnAnswerMeetsTheSloUntilTheDeadline) {
  EXPECT_EQ(VerdictOf(nullptr, kDeadline, kEarly), SloVerdict::kMet);
  EXPECT_EQ(VerdictOf(nullptr, kDeadline, kDeadline), SloVerdict::kMet);
  EXPECT_EQ(VerdictOf(nullptr, kDeadline, kLate), SloVerdict::kMissed);
}

TEST(Outcome, WhatWasNotComputedIsRejected) {
  EXPECT_EQ(Verdict(ErrorCode::kUnavailable, kEarly), SloVerdict::kRejected);
  EXPECT_EQ(Verdict(ErrorCode::kDeadlineExceeded, kLate), SloVerdict::kRejected);
}

TEST(Outcome, ACallThatEndedAtItsDeadlineIsMissedAndOneThatWasGivenUpCountsNowhere) {
  const Error cancelled{ErrorCode::kCancelled, "gone"};
  EXPECT_EQ(Verdict(ErrorCode::kCancelled, kDeadline), SloVerdict::kMissed);
  EXPECT_EQ(OutcomeOf(&cancelled, kDeadline, kDeadline), RequestOutcome::kExpired);
  EXPECT_EQ(Verdict(ErrorCode::kCancelled, kEarly), SloVerdict::kNone);
  EXPECT_EQ(OutcomeOf(&cancelled, kDeadline, kEarly), RequestOutcome::kCancelled);
  EXPECT_EQ(OutcomeOf(&cancelled, std::nullopt, kLate), RequestOutcome::kCancelled);
}

TEST(Outcome, OurOwnFailureMissesTheSloAndTheClientsMistakeDoesNot) {
  EXPECT_EQ(Verdict(ErrorCode::kInternal, kEarly), SloVerdict::kMissed);
  for (const ErrorCode code : {ErrorCode::kInvalidArgument, ErrorCode::kNotFound, ErrorCode::kTooLarge}) {
    EXPECT_EQ(Verdict(code, kEarly), SloVerdict::kNone);
    EXPECT_EQ(Verdict(code, kLate), SloVerdict::kNone);
  }
}

TEST(Outcome, WithoutADeadlineThereIsNoVerdict) {
  EXPECT_EQ(VerdictOf(nullptr, std::nullopt, kLate), SloVerdict::kNone);
  EXPECT_EQ(Verdict(ErrorCode::kInternal, kLate, std::nullopt), SloVerdict::kNone);
}

TEST(Outcome, TrainingIsToBlameForWhatItAddedAndNoMore) {
  EXPECT_EQ(CauseOf(SloVerdict::kMissed, {.late = 4ms, .added = 4ms}), MissCause::kTraining);
  EXPECT_EQ(CauseOf(SloVerdict::kRejected, {.late = 4ms, .added = 5ms}), MissCause::kTraining);
  EXPECT_EQ(CauseOf(SloVerdict::kMissed, {.late = 4ms, .added = 3ms}), MissCause::kOther);
  EXPECT_EQ(CauseOf(SloVerdict::kMissed, {.late = -1ms, .added = 0ms}), MissCause::kOther);
  EXPECT_EQ(CauseOf(SloVerdict::kMet, {.late = -1ms, .added = 3ms}), MissCause::kNone);
  EXPECT_EQ(CauseOf(SloVerdict::kNone, {.late = 4ms, .added = 5ms}), MissCause::kNone);
}

TEST(Outcome, WhatDependsOnDoubtfulTimesHasNoKnownCause) {
  EXPECT_EQ(CauseOf(SloVerdict::kMissed, {.late = 4ms, .added = 5ms, .doubtful = 2ms}), MissCause::kUnknown);
  EXPECT_EQ(CauseOf(SloVerdict::kMissed, {.late = 4ms, .added = 6ms, .doubtful = 2ms}), MissCause::kTraining);
  EXPECT_EQ(CauseOf(SloVerdict::kMissed, {.late = 4ms, .added = 3ms, .doubtful = 3ms}), MissCause::kOther);
}

TEST(Outcome, TrainingAddsNoMoreThanTheWholeTime) {
  const MonotonicTime arrival(1h);
  EXPECT_EQ(LatenessOf(arrival, arrival + 5ms, arrival + 7ms, 0ms, {.added = 9ms}).added, 7ms);
  EXPECT_EQ(LatenessOf(arrival, arrival + 5ms, arrival + 7ms, 0ms, {.added = -1ms}).added, 0ms);
  EXPECT_EQ(LatenessOf(arrival, arrival + 5ms, arrival + 7ms, 3ms, {.added = 1ms}).late, 5ms);
}

TEST(Outcome, FailuresHaveTritonsReasons) {
  EXPECT_EQ(ReasonOf({ErrorCode::kUnavailable, ""}), FailureReason::kRejected);
  EXPECT_EQ(ReasonOf({ErrorCode::kDeadlineExceeded, ""}), FailureReason::kRejected);
  EXPECT_EQ(ReasonOf({ErrorCode::kCancelled, ""}), FailureReason::kCanceled);
  EXPECT_EQ(ReasonOf({ErrorCode::kInternal, ""}), FailureReason::kBackend);
  EXPECT_EQ(ReasonOf({ErrorCode::kInvalidArgument, ""}), FailureReason::kOther);
}

}  // namespace
}  // namespace tandem
