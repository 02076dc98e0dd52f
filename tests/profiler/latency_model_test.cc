#include "profiler/latency_model.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

namespace tandem {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

class LatencyModelTest : public ::testing::Test {
 protected:
  void Observe(std::int64_t elements, nanoseconds took, int times = 1) {
    for (int i = 0; i < times; ++i) model_.Observe(elements, took, clock_.Now());
  }
  nanoseconds Typical(std::int64_t elements) { return model_.Predict(elements)->typical; }
  nanoseconds High(std::int64_t elements) { return model_.Predict(elements)->high; }

  FakeClock clock_;
  LatencyModel model_;
};

TEST_F(LatencyModelTest, KnowsNothingAtFirst) {
  EXPECT_FALSE(model_.Predict(1));
  EXPECT_FALSE(model_.Predict(1'000'000));
}

TEST_F(LatencyModelTest, TheFirstRunIsAllThatIsKnown) {
  Observe(1, 10ms);
  EXPECT_EQ(Typical(1), 10ms);
  EXPECT_GT(High(1), 10ms);
  EXPECT_EQ(model_.Predict(1)->learnt, clock_.Now());
}

TEST_F(LatencyModelTest, SizesThatWereNotSeenLieBetweenTheirNeighbours) {
  Observe(2, 10ms);
  Observe(6, 30ms);
  EXPECT_EQ(Typical(4), 20ms);
  EXPECT_EQ(Typical(1), 10ms) << "no dearer than the next larger";
  EXPECT_EQ(Typical(12), 60ms) << "each element no dearer than of the next smaller";
  EXPECT_EQ(Typical(600), 3s);
}

TEST_F(LatencyModelTest, SaysWhatIsAGuess) {
  Observe(2, 10ms);
  Observe(6, 30ms);
  EXPECT_FALSE(model_.Predict(2)->guessed());
  for (const std::int64_t size : {1, 4, 7, 1'000'000}) EXPECT_TRUE(model_.Predict(size)->guessed()) << size;
}

TEST_F(LatencyModelTest, AbsurdSizesTakeLongAndNoLonger) {
  Observe(1, 5s);
  EXPECT_GT(Typical(std::int64_t{1} << 62), std::chrono::hours(1));
  EXPECT_LT(Typical(std::int64_t{1} << 62), std::chrono::hours(24 * 366));
}

TEST_F(LatencyModelTest, ALargerRunIsNotTakenToBeShorter) {
  Observe(2, 30ms);
  Observe(6, 10ms);
  EXPECT_EQ(Typical(4), 30ms);
}

TEST_F(LatencyModelTest, ASingleSlowRunChangesLittle) {
  Observe(1, 10ms, 100);
  Observe(1, 10s);
  EXPECT_LT(Typical(1), 11ms);
  EXPECT_LT(High(1), 20ms);
}

TEST_F(LatencyModelTest, ASlowFirstRunIsSoonForgotten) {
  Observe(1, 100ms);
  Observe(1, 10ms, 10);
  EXPECT_LT(Typical(1), 12ms);
  EXPECT_LT(High(1), 20ms);
}

TEST_F(LatencyModelTest, FollowsAModelThatGetsSlowerOrFaster) {
  Observe(1, 10ms, 200);
  Observe(1, 20ms, 30);
  EXPECT_EQ(Typical(1), 20ms);
  EXPECT_GE(High(1), 20ms);
  Observe(1, 5ms, 60);
  EXPECT_EQ(Typical(1), 5ms);
}

TEST_F(LatencyModelTest, AfterAPauseAFewRunsAreEnough) {
  Observe(1, 10ms, 200);
  clock_.Advance(2s);
  Observe(1, 20ms, 6);
  EXPECT_GT(Typical(1), 17ms);
}

TEST_F(LatencyModelTest, ARunInWhichTheMachineStoodStillIsNoPause) {
  Observe(1, 10ms, 200);
  clock_.Advance(24h);
  Observe(1, 24h);
  EXPECT_LT(High(1), 12ms);
}

TEST_F(LatencyModelTest, WhatIsKnownFromBeforehandIsNotOldUntilSomebodyWasRefusedForIt) {
  model_.Recall({.elements = 1, .typical = 10ms, .spread = 2});
  Observe(4, 40ms);
  clock_.Advance(1h);
  EXPECT_EQ(model_.Predict(1)->learnt, kBeforehand);
  EXPECT_EQ(Typical(1), 10ms);
  EXPECT_EQ(High(1), 20ms);
  const MonotonicTime learnt = model_.Predict(4)->learnt;
  model_.BeginToAge(clock_.Now());
  EXPECT_EQ(model_.Predict(1)->learnt, clock_.Now());
  EXPECT_EQ(model_.Predict(4)->learnt, learnt) << "what a run has taught is as old as that";
}

TEST_F(LatencyModelTest, AMachineThatHasChangedIsLearntInAFewRuns) {
  model_.Recall({.elements = 1, .typical = 100ms, .spread = 1.5});
  Observe(1, 10ms, 10);
  EXPECT_LT(Typical(1), 15ms);
  EXPECT_LT(High(1), 25ms);
}

TEST_F(LatencyModelTest, TheFirstRealRunReplacesWhatWasOnlySupposed) {
  model_.Suppose(1, 1ms);
  EXPECT_EQ(Typical(1), 1ms);
  EXPECT_FALSE(model_.Predict(1)->guessed());
  EXPECT_TRUE(model_.Learnt().empty()) << "nothing to tell the next process";
  Observe(1, 50ms);
  EXPECT_EQ(Typical(1), 50ms);
  model_.Suppose(1, 1ms);
  EXPECT_EQ(Typical(1), 50ms);
}

TEST_F(LatencyModelTest, SamplesOfAWarmUpWeighNoMoreThanAFewRuns) {
  for (int i = 0; i < 1000; ++i) model_.Observe(1, 10ms, kBeforehand);
  EXPECT_EQ(Typical(1), 10ms);
  Observe(1, 20ms, 6);
  EXPECT_GT(Typical(1), 17ms);
}

TEST_F(LatencyModelTest, AnotherModelRecallsWhatThisOneLearnt) {
  Observe(1, 10ms, 50);
  Observe(3, 25ms, 50);
  Observe(1000, 5s, 50);
  LatencyModel next;
  for (const LearntRun& run : model_.Learnt()) next.Recall(run);
  EXPECT_EQ(next.Learnt(), model_.Learnt());
  for (const std::int64_t size : {1, 2, 3, 500, 1000}) {
    EXPECT_EQ(next.Predict(size)->typical, Typical(size)) << size;
    EXPECT_EQ(next.Predict(size)->high, High(size)) << size;
  }
}

TEST_F(LatencyModelTest, TellsQuantilesOfRunsThatVary) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal(std::log(10e6), 0.25);
  const auto run = [&] { return nanoseconds(static_cast<std::int64_t>(std::exp(normal(random)))); };
  int longer = 0;
  int much_longer = 0;
  constexpr int kRuns = 20'000;
  for (int i = 0; i < kRuns; ++i) {
    const nanoseconds took = run();
    if (i >= 1000) {
      longer += took > Typical(1) ? 1 : 0;
      much_longer += took > High(1) ? 1 : 0;
    }
    Observe(1, took);
  }
  EXPECT_NEAR(longer / double{kRuns - 1000}, 0.5, 0.03);
  EXPECT_NEAR(much_longer / double{kRuns - 1000}, 0.05, 0.02);
}

}  // namespace
}  // namespace tandem
