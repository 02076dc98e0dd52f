#include "colocation/run_width.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace tandem {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

constexpr MonotonicTime kNow{1h};

RunPrediction Takes(nanoseconds typical) {
  return {.typical = typical, .high = typical + typical / 10, .learnt = kNow - 100ms};
}

class RunWidthTest : public ::testing::Test {
 protected:
  // So many equal runs wait for free threads.
  WidthSnapshot Waiting(std::int64_t runs, nanoseconds wide, nanoseconds narrow, std::size_t threads = 2) {
    rests_.assign(threads, 0ns);
    return {.now = kNow,
            .rests = rests_,
            .wide = Takes(wide),
            .narrow = Takes(narrow),
            .runs = runs,
            .all_wide = runs * wide,
            .all_narrow = runs * narrow};
  }
  // One of them is busy for so long.
  WidthSnapshot Beside(nanoseconds rest, WidthSnapshot snapshot) {
    rests_[0] = rest;
    snapshot.running = 1;
    return snapshot;
  }

  std::vector<nanoseconds> rests_;
};

TEST_F(RunWidthTest, AloneARunHasAllThreads) {
  EXPECT_EQ(ChooseWidth(Waiting(1, 4ms, 7ms)), WidthChoice::kAll);
  EXPECT_EQ(ChooseWidth(Waiting(1, 4ms, 4ms)), WidthChoice::kAll);
}

TEST_F(RunWidthTest, TwoHaveAThreadEachWhenThatEndsSooner) {
  EXPECT_EQ(ChooseWidth(Waiting(2, 4ms, 7ms)), WidthChoice::kOne);
  EXPECT_EQ(ChooseWidth(Waiting(2, 4ms, 9ms)), WidthChoice::kAll);
  EXPECT_EQ(ChooseWidth(Waiting(2, 4ms, 7500us)), WidthChoice::kAll) << "4 and 8 ms rather than both after 7.5";
}

TEST_F(RunWidthTest, OnManyThreadsAFewRunOneAfterTheOther) {
  EXPECT_EQ(ChooseWidth(Waiting(2, 1ms, 12ms, 16)), WidthChoice::kAll);
  EXPECT_EQ(ChooseWidth(Waiting(12, 1ms, 12ms, 16)), WidthChoice::kAll);
  EXPECT_EQ(ChooseWidth(Waiting(14, 1ms, 12ms, 16)), WidthChoice::kOne);
  EXPECT_EQ(ChooseWidth(Waiting(1000, 1ms, 12ms, 16)), WidthChoice::kOne);
  EXPECT_EQ(ChooseWidth(Waiting(1000, 1ms, 17ms, 16)), WidthChoice::kAll);
}

TEST_F(RunWidthTest, TheThirdOfThreeIsNotLeftAloneOnOneThread) {
  EXPECT_EQ(ChooseWidth(Waiting(3, 4ms, 7ms)), WidthChoice::kAll) << "4 + 7 ms instead of 7 + 7";
  EXPECT_EQ(ChooseWidth(Waiting(4, 4ms, 7ms)), WidthChoice::kOne);
}

TEST_F(RunWidthTest, ARunThatIsInTimeOnlyOnAllThreadsGetsThem) {
  WidthSnapshot snapshot = Waiting(2, 4ms, 7ms);
  snapshot.left = 6ms;
  EXPECT_EQ(ChooseWidth(snapshot), WidthChoice::kAll);
  snapshot.left = 20ms;
  EXPECT_EQ(ChooseWidth(snapshot), WidthChoice::kOne);
  snapshot.left = 1ms;
  EXPECT_EQ(ChooseWidth(snapshot), WidthChoice::kOne) << "late anyway";
}

TEST_F(RunWidthTest, BesideARunOnOneThreadItWaitsForAllThreadsWhenThatEndsSooner) {
  EXPECT_EQ(ChooseWidth(Beside(1ms, Waiting(1, 4ms, 7ms))), WidthChoice::kWait);
  EXPECT_EQ(ChooseWidth(Beside(5ms, Waiting(1, 4ms, 7ms))), WidthChoice::kOne);
  EXPECT_EQ(ChooseWidth(Beside(1ms, Waiting(2, 4ms, 7ms))), WidthChoice::kOne);
}

TEST_F(RunWidthTest, ItWaitsForNoneThatTakesMuchLongerThanExpected) {
  WidthSnapshot snapshot = Beside(0ms, Waiting(1, 4ms, 7ms));
  EXPECT_EQ(ChooseWidth(snapshot), WidthChoice::kWait);
  snapshot.overdue = true;
  EXPECT_EQ(ChooseWidth(snapshot), WidthChoice::kOne);
}

TEST_F(RunWidthTest, WithADeadlineItWaitsOnlyIfItIsInTimeThen) {
  WidthSnapshot snapshot = Beside(2ms, Waiting(1, 4ms, 6500us));
  snapshot.left = 6500us;
  EXPECT_EQ(ChooseWidth(snapshot), WidthChoice::kWait) << "2 + 4.4 ms against 7.15";
  snapshot = Beside(2ms, Waiting(1, 4ms, 5ms));
  snapshot.wide->high = 8ms;
  snapshot.left = 7ms;
  EXPECT_EQ(ChooseWidth(snapshot), WidthChoice::kOne) << "2 + 8 ms at worst against 5.5";
}

TEST_F(RunWidthTest, AModelWithoutASessionForOneThreadWaitsForAll) {
  WidthSnapshot snapshot = Waiting(9, 4ms, 7ms);
  snapshot.narrow_possible = false;
  snapshot.overdue = true;
  EXPECT_EQ(ChooseWidth(snapshot), WidthChoice::kAll);
  EXPECT_EQ(ChooseWidth(Beside(1ms, snapshot)), WidthChoice::kWait);
}

TEST_F(RunWidthTest, WhatIsNotKnownIsTriedWhenSeveralWait) {
  WidthSnapshot snapshot = Waiting(2, 4ms, 100ms);
  EXPECT_EQ(ChooseWidth(snapshot), WidthChoice::kAll);
  snapshot.narrow->learnt = kNow - kTryNarrowAfter - 1s;
  EXPECT_EQ(ChooseWidth(snapshot), WidthChoice::kOne);
  snapshot.left = 50ms;
  EXPECT_EQ(ChooseWidth(snapshot), WidthChoice::kAll) << "not at the price of a deadline";
  snapshot.narrow.reset();
  EXPECT_EQ(ChooseWidth(snapshot), WidthChoice::kOne);
  snapshot.left = 6ms;
  EXPECT_EQ(ChooseWidth(snapshot), WidthChoice::kAll);
  snapshot.wide.reset();
  EXPECT_EQ(ChooseWidth(snapshot), WidthChoice::kAll);
}

TEST(RunWidth, WhatWasLearntLaterSetsTheOtherRight) {
  const auto bounded = [](RunPrediction run, RunWidth width, const RunPrediction& other) {
    BoundByOther(run, width, other, 4);
    return std::pair(run.typical, run.high);
  };
  const RunPrediction old{.typical = 1ms, .high = 9ms, .learnt = kNow - 5s};
  const RunPrediction late{.typical = 8ms, .high = 16ms, .learnt = kNow - 1s};
  EXPECT_EQ(bounded(old, RunWidth::kOne, late), std::pair(nanoseconds(8ms), nanoseconds(16ms)));
  EXPECT_EQ(bounded(old, RunWidth::kAll, late), std::pair(nanoseconds(1ms), nanoseconds(9ms))) << "on four threads";
  EXPECT_EQ(bounded({.typical = 500us, .high = 9ms, .learnt = kNow - 5s}, RunWidth::kAll, late),
            std::pair(nanoseconds(1ms), nanoseconds(2ms)));
  EXPECT_EQ(bounded(late, RunWidth::kOne, old), std::pair(nanoseconds(8ms), nanoseconds(16ms))) << "it is newer";
  RunPrediction before = old;
  before.learnt = kBeforehand;
  EXPECT_EQ(bounded(before, RunWidth::kOne, late).first, 8ms);
  EXPECT_EQ(bounded(late, RunWidth::kOne, before).first, 8ms);
  before.typical = 100ms;
  EXPECT_EQ(bounded(before, RunWidth::kOne, late).first, 64ms);
  before.typical = 20ms;
  before.high = 50ms;
  EXPECT_EQ(bounded(before, RunWidth::kOne, late), std::pair(nanoseconds(20ms), nanoseconds(50ms))) << "as it was";
}

// When all runs, given a thread each as soon as one is free, are done.
nanoseconds OneByOne(std::vector<nanoseconds> threads, std::int64_t runs, nanoseconds each) {
  for (std::int64_t i = 0; i < runs; ++i) *std::ranges::min_element(threads) += each;
  return std::ranges::max(threads);
}

TEST(RunWidth, WhateverWaitsIsDoneSoonestOrATenthLaterWithTheFirstOnesDoneSooner) {
  ASSERT_TRUE(rc::check([] {
    const auto some = [](int from, int to) { return nanoseconds(*rc::gen::inRange(from, to) * 1'000LL); };
    const auto threads = *rc::gen::inRange<std::size_t>(2, 9);
    std::vector<nanoseconds> rests(threads);
    const int running = *rc::gen::inRange<int>(0, static_cast<int>(threads));
    for (int i = 0; i < running; ++i) rests[static_cast<std::size_t>(i)] = some(0, 20'000);
    const nanoseconds wide = some(1, 10'000);
    const nanoseconds narrow = some(1, 60'000);
    const auto runs = *rc::gen::inRange<std::int64_t>(1, static_cast<std::int64_t>(3 * threads));
    const WidthChoice choice = ChooseWidth({.now = kNow,
                                            .rests = rests,
                                            .running = running,
                                            .wide = Takes(wide),
                                            .narrow = Takes(narrow),
                                            .runs = runs,
                                            .all_wide = runs * wide,
                                            .all_narrow = runs * narrow});
    RC_ASSERT(choice != (running == 0 ? WidthChoice::kWait : WidthChoice::kAll));
    if (running == 0 && runs == 1) return RC_ASSERT(choice == WidthChoice::kAll);
    const nanoseconds together = std::ranges::max(rests) + runs * wide;
    const nanoseconds apart = OneByOne(rests, runs, narrow);
    if (choice == WidthChoice::kOne) {
      RC_ASSERT(apart < together - together / kSoonerBy);
    } else {
      RC_ASSERT(together - together / kSoonerBy <= apart);
    }
  }));
}

}  // namespace
}  // namespace tandem
