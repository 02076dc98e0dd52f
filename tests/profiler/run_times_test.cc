#include "profiler/run_times.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

using namespace std::chrono_literals;

TEST(RunTimes, KnowsNothingAtFirst) {
  EXPECT_EQ(RunTimes().Expected(1), 0ns);
}

TEST(RunTimes, JudgesByRunsOfAboutTheSameSize) {
  RunTimes times;
  times.Observe(1, 10us);
  times.Observe(8, 50us);
  EXPECT_EQ(times.Expected(1), 10us);
  EXPECT_EQ(times.Expected(9), 50us);
  EXPECT_EQ(times.Expected(4), 10us) << "by the largest of the smaller ones";
  EXPECT_EQ(times.Expected(1000), 50us);
}

TEST(RunTimes, FollowsALongRunAtOnceAndShortOnesSlowly) {
  RunTimes times;
  times.Observe(1, 10us);
  times.Observe(1, 90us);
  EXPECT_EQ(times.Expected(1), 90us);
  times.Observe(1, 10us);
  EXPECT_EQ(times.Expected(1), 80us);
  for (int i = 0; i < 100; ++i) times.Observe(1, 10us);
  EXPECT_LT(times.Expected(1), 11us);
}

}  // namespace
}  // namespace tandem
