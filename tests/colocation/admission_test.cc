#include "colocation/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

Status Admit(AdmissionSnapshot snapshot) {
  snapshot.model = "m";
  snapshot.now = MonotonicTime(1h);
  return BoundedQueueAdmission().Admit(snapshot);
}

TEST(Admission, LetsInWhatFindsRoom) {
  EXPECT_TRUE(Admit({.queued = 7, .queued_model = 7, .max_queued = 8}));
  EXPECT_TRUE(Admit({.deadline = MonotonicTime(1h + 1ns), .max_queued = 8}));
}

TEST(Admission, NamesTheBoundThatIsReached) {
  const auto device = Admit({.queued = 8, .max_queued = 8});
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(device.error().message, HasSubstr("--max-queue is 8"));
  const auto model = Admit({.queued = 2, .queued_model = 2, .max_queued = 8, .max_queued_model = 2});
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(model.error().message, HasSubstr("max_queue_size is 2"));
}

TEST(Admission, RefusesWhatIsLateAlready) {
  const auto late = Admit({.deadline = MonotonicTime(1h), .max_queued = 8});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kDeadlineExceeded);
}

class DeadlineAdmissionTest : public ::testing::Test {
 protected:
  // A request that has `left`, behind `ahead`, whose run takes up to 20 ms.
  static Status Admit(std::chrono::nanoseconds left, std::chrono::nanoseconds ahead,
                      std::chrono::nanoseconds age = 10ms) {
    const MonotonicTime now(1h);
    return DeadlineAdmission().Admit({.model = "m",
                                      .now = now,
                                      .deadline = now + left,
                                      .max_queued = 8,
                                      .work_ahead = ahead,
                                      .run = RunPrediction{.typical = 10ms, .high = 20ms, .learnt = now - age}});
  }
};

TEST_F(DeadlineAdmissionTest, LetsInWhatIsExpectedInTime) {
  EXPECT_TRUE(Admit(100ms, 0ms));
  EXPECT_TRUE(Admit(100ms, 79ms));
  EXPECT_TRUE(Admit(21ms, 0ms));
}

TEST_F(DeadlineAdmissionTest, RefusesAtOnceWhatIsNotAndSaysWhy) {
  const Status refused = Admit(100ms, 81ms);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(refused.error().message, HasSubstr("100.000 ms are left"));
  EXPECT_THAT(refused.error().message, HasSubstr("81.000 ms of work ahead"));
  EXPECT_THAT(refused.error().message, HasSubstr("20.000 ms are expected"));
  EXPECT_FALSE(Admit(20ms, 0ms)) << "the answer must be sent, too";
}

TEST_F(DeadlineAdmissionTest, WhatWasLearntLongAgoIsTriedAgain) {
  EXPECT_FALSE(Admit(15ms, 5ms, 900ms));
  EXPECT_TRUE(Admit(15ms, 5ms, 1100ms));
  EXPECT_FALSE(Admit(15ms, 15ms, 1100ms)) << "what stands before it is known";
}

TEST_F(DeadlineAdmissionTest, AGuessIsNoReasonToRefuse) {
  const MonotonicTime now(1h);
  AdmissionSnapshot snapshot{.now = now, .deadline = now + 15ms, .max_queued = 8};
  snapshot.run = RunPrediction{.typical = 10ms, .high = 20ms, .learnt = now};
  EXPECT_FALSE(DeadlineAdmission().Admit(snapshot));
  snapshot.run->learnt = {};
  EXPECT_TRUE(DeadlineAdmission().Admit(snapshot));
}

TEST_F(DeadlineAdmissionTest, AShortSloHasRoomForAShortRun) {
  const MonotonicTime now(1h);
  EXPECT_TRUE(DeadlineAdmission().Admit({.now = now,
                                         .deadline = now + 400us,
                                         .max_queued = 8,
                                         .run = RunPrediction{.typical = 50us, .high = 60us, .learnt = now}}));
}

TEST_F(DeadlineAdmissionTest, NeverRefusesByPredictionWhatHasNoDeadlineOrIsNotKnown) {
  const RunPrediction slow{.typical = 1h, .high = 2h, .learnt = MonotonicTime(1h)};
  EXPECT_TRUE(DeadlineAdmission().Admit({.now = MonotonicTime(1h), .max_queued = 8, .work_ahead = 1h, .run = slow}));
  EXPECT_TRUE(DeadlineAdmission().Admit(
      {.now = MonotonicTime(1h), .deadline = MonotonicTime(1h + 1ms), .max_queued = 8, .work_ahead = 1h}));
}

TEST_F(DeadlineAdmissionTest, KeepsTheBoundsOfTheQueue) {
  EXPECT_FALSE(DeadlineAdmission().Admit({.now = MonotonicTime(1h), .queued = 8, .max_queued = 8}));
}

TEST_F(DeadlineAdmissionTest, IsHopelessWhenMoreLikelyThanNotItEndsTooLate) {
  const MonotonicTime now(1h);
  const RunPrediction run{.typical = 10ms, .high = 20ms, .learnt = now};
  const DeadlineAdmission policy;
  EXPECT_FALSE(policy.IsHopeless(now, now + 10ms, run));
  EXPECT_TRUE(policy.IsHopeless(now, now + 9ms, run));
  EXPECT_FALSE(policy.IsHopeless(now, now + 9ms, std::nullopt));
  EXPECT_FALSE(policy.IsHopeless(now + 2s, now + 2s + 9ms, run)) << "learnt long ago";
  EXPECT_FALSE(BoundedQueueAdmission().IsHopeless(now, now + 9ms, run));
}

TEST(Admission, OfARefusalTrainingAddsTheShareByWhichRunsAreLongerBesideIt) {
  const MonotonicTime now(1h);
  const RunPrediction run{.typical = 20ms, .high = 30ms, .learnt = now};
  const AdmissionSnapshot seen{.now = now, .deadline = now + 40ms, .max_queued = 8, .work_ahead = 50ms, .run = run};
  const Shortfall half = ShortfallOf(seen, RunWeight::kCounted, {.typical = 10ms});
  EXPECT_EQ(half.late, 50ms + 30ms + 500us - 40ms);
  EXPECT_EQ(half.added, 40ms);
  EXPECT_TRUE(half.sure);
  EXPECT_FALSE(ShortfallOf(seen, RunWeight::kCounted, {.typical = 10ms, .sure = false}).sure);
  EXPECT_EQ(ShortfallOf(seen, RunWeight::kDoubtful, {.typical = 10ms}).added, 25ms) << "its own run did not count";
  EXPECT_EQ(ShortfallOf(seen, RunWeight::kCounted, {.typical = 20ms}).added, 0ms);
  EXPECT_EQ(ShortfallOf(seen, RunWeight::kCounted, {.typical = 0ms}).added, 0ms) << "not known";
}

TEST(Admission, TellsWhenARefusedRequestWouldBeLetIn) {
  const MonotonicTime now = MonotonicTime{} + 10s;
  const RunPrediction run{.typical = 20ms, .high = 30ms, .learnt = now - 400ms};
  AdmissionSnapshot seen{.now = now, .deadline = now + 40ms, .max_queued = 8, .work_ahead = 5s, .run = run};
  EXPECT_EQ(RetryAfter(seen, RunWeight::kCounted), 4991ms) << "when 9.5 ms of work are left, half for the answer";
  EXPECT_EQ(RetryAfter(seen, RunWeight::kDoubtful), 4961ms);
  seen.work_ahead = 31h;
  EXPECT_EQ(RetryAfter(seen, RunWeight::kCounted), 30s);
  seen.work_ahead = 9ms + 600us;
  EXPECT_EQ(RetryAfter(seen, RunWeight::kCounted), 1ms) << "rounded up";
}

TEST(Admission, OneWhoseOwnRunIsTooLongIsLetInOnceThatIsOld) {
  const MonotonicTime now = MonotonicTime{} + 10s;
  const RunPrediction run{.typical = 90ms, .high = 100ms, .learnt = now - 400ms};
  AdmissionSnapshot seen{.now = now, .deadline = now + 40ms, .max_queued = 8, .work_ahead = 10ms, .run = run};
  const auto admitted = [&](std::chrono::nanoseconds later) {
    AdmissionSnapshot then = seen;
    then.now += later;
    *then.deadline += later;
    then.work_ahead = std::max(0ns, then.work_ahead - later);
    return DeadlineAdmission().Admit(then).has_value();
  };
  EXPECT_EQ(RetryAfter(seen, RunWeight::kCounted), 601ms);
  EXPECT_FALSE(admitted(600ms));
  EXPECT_TRUE(admitted(601ms));
  seen.work_ahead = 2s;
  EXPECT_FALSE(admitted(RetryAfter(seen, RunWeight::kCounted) - 1ms)) << "what is ahead must be done, too";
  EXPECT_TRUE(admitted(RetryAfter(seen, RunWeight::kCounted)));
  seen.run->learnt = kBeforehand;
  seen.work_ahead = 0ns;
  EXPECT_EQ(RetryAfter(seen, RunWeight::kCounted), 1001ms) << "it grows old from now on";
}

TEST(Admission, WhereThereIsNoRoomWhatWaitsIsWaitedFor) {
  AdmissionSnapshot seen{.now = MonotonicTime{} + 10s, .queued = 8, .max_queued = 8, .work_ahead = 1500ms};
  EXPECT_EQ(RetryAfter(seen, RunWeight::kIgnored), 1500ms);
  seen.work_ahead = 0ns;
  EXPECT_EQ(RetryAfter(seen, RunWeight::kIgnored), 0ms) << "nothing is known";
  seen = {.now = seen.now, .queued = 2, .queued_model = 2, .max_queued = 8, .max_queued_model = 2, .work_ahead = 1s};
  EXPECT_EQ(RetryAfter(seen, RunWeight::kIgnored), 1s);
}

TEST(Admission, NamesThePoliciesThatThereAre) {
  EXPECT_TRUE(MakeAdmission("deadline"));
  EXPECT_TRUE(MakeAdmission("queue"));
  const auto unknown = MakeAdmission("clairvoyant");
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message, HasSubstr("'clairvoyant' is not known; known are deadline, queue"));
}

}  // namespace
}  // namespace tandem
