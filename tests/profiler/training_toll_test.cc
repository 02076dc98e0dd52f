#include "profiler/training_toll.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

using namespace std::chrono_literals;

class TrainingTollTest : public ::testing::Test {
 protected:
  // A run of worker 0 that begins now and for which nobody waits.
  void Run(std::chrono::nanoseconds took, std::chrono::nanoseconds typical, bool sure = true) {
    const AloneTime alone{.typical = typical, .sure = sure};
    const MonotonicTime began = clock_.Now();
    toll_.RunBegan(0, began, began, alone);
    clock_.Advance(took);
    beside_ = toll_.RunEnded(0, began, clock_.Now(), alone);
  }
  std::chrono::nanoseconds Added() const { return toll_.Added(clock_.Now()).added; }
  std::chrono::nanoseconds Doubtful() const { return toll_.Added(clock_.Now()).doubtful; }

  FakeClock clock_;
  TrainingToll toll_;
  bool beside_ = false;
};

TEST_F(TrainingTollTest, WithoutATrainerNothingIsItsFault) {
  Run(30ms, 10ms);
  EXPECT_FALSE(beside_);
  EXPECT_EQ(Added(), 0ns);
}

TEST_F(TrainingTollTest, WhatRunsTakeLongerBesideATrainerAddsUp) {
  toll_.TrainerRuns();
  Run(30ms, 10ms);
  EXPECT_TRUE(beside_);
  Run(12ms, 10ms);
  Run(8ms, 10ms);
  EXPECT_EQ(Added(), 22ms) << "one that is shorter makes up for nothing";
}

TEST_F(TrainingTollTest, OfARunThatIsNotKnownNothingIsSaid) {
  toll_.TrainerRuns();
  Run(30ms, 0ms);
  EXPECT_TRUE(beside_);
  EXPECT_EQ(Added(), 0ns);
}

TEST_F(TrainingTollTest, WhatIsJudgedByOldTimesIsKeptApart) {
  toll_.TrainerRuns();
  Run(30ms, 10ms);
  Run(15ms, 10ms, false);
  EXPECT_EQ(Added(), 25ms) << "all of it";
  EXPECT_EQ(Doubtful(), 5ms);
  const MonotonicTime began = clock_.Now();
  toll_.RunBegan(0, began, began, {.typical = 10ms, .sure = false});
  clock_.Advance(12ms);
  EXPECT_EQ(Added(), 27ms);
  EXPECT_EQ(Doubtful(), 7ms) << "also of one that is under way";
}

TEST_F(TrainingTollTest, ATrainerThatStopsOrComesInTheMiddleCounts) {
  toll_.TrainerRuns();
  clock_.Advance(1s);
  const MonotonicTime began = clock_.Now();
  toll_.RunBegan(0, began, began, {.typical = 10ms});
  toll_.TrainerStops(clock_.Now());
  clock_.Advance(15ms);
  EXPECT_TRUE(toll_.RunEnded(0, began, clock_.Now(), {.typical = 10ms}));
  EXPECT_EQ(Added(), 5ms);
  clock_.Advance(1s);
  const MonotonicTime next = clock_.Now();
  toll_.RunBegan(0, next, next, {.typical = 10ms});
  clock_.Advance(15ms);
  toll_.TrainerRuns();
  EXPECT_TRUE(toll_.RunEnded(0, next, clock_.Now(), {.typical = 10ms}));
  EXPECT_EQ(Added(), 10ms);
}

TEST_F(TrainingTollTest, WhatItUsedIsMissingUntilTheNextPeriod) {
  toll_.TrainerRuns();
  toll_.TrainerStops(clock_.Now());
  clock_.Advance(TrainingToll::kAftermath);
  EXPECT_TRUE(toll_.TrainedSince(clock_.Now()));
  clock_.Advance(1ns);
  EXPECT_FALSE(toll_.TrainedSince(clock_.Now()));
}

TEST_F(TrainingTollTest, OneOfTwoTrainersIsEnough) {
  toll_.TrainerRuns();
  toll_.TrainerRuns();
  toll_.TrainerStops(clock_.Now());
  clock_.Advance(1s);
  EXPECT_TRUE(toll_.TrainedSince(clock_.Now()));
}

TEST_F(TrainingTollTest, ARunUnderWayCountsAsFarAsItIsTooLongAlready) {
  toll_.TrainerRuns();
  const MonotonicTime began = clock_.Now();
  toll_.RunBegan(0, began, began, {.typical = 10ms});
  clock_.Advance(9ms);
  EXPECT_EQ(Added(), 0ns);
  clock_.Advance(4ms);
  EXPECT_EQ(Added(), 3ms);
  EXPECT_TRUE(toll_.RunEnded(0, began, clock_.Now(), {.typical = 10ms}));
  EXPECT_EQ(Added(), 3ms) << "not twice";
}

TEST_F(TrainingTollTest, AThreadThatDoesNotComeToRunCounts) {
  toll_.TrainerRuns();
  Run(10ms, 10ms);
  const MonotonicTime waited_since = clock_.Now() - 5ms;
  clock_.Advance(3ms);
  toll_.RunBegan(0, waited_since, clock_.Now(), {.typical = 10ms});
  EXPECT_EQ(Added(), 3ms - TrainingToll::kWaking) << "from when the worker was free on";
}

TEST_F(TrainingTollTest, WhoeverIsNoWorkerMayRunToo) {
  toll_.TrainerRuns();
  const MonotonicTime began = clock_.Now();
  toll_.RunBegan(65'535, began, began, {.typical = 1ms});
  clock_.Advance(3ms);
  EXPECT_TRUE(toll_.RunEnded(65'535, began, clock_.Now(), {.typical = 1ms}));
  EXPECT_EQ(Added(), 2ms);
}

}  // namespace
}  // namespace tandem
