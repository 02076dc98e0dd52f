#include "colocation/trainer_threads.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

int ThreadsUnder(const char* policy, CoreCounts cores, bool paced = true) {
  return TrainerThreads(**MakeColocationPolicy(policy), cores, paced);
}

TEST(TrainerThreads, ALimitBoundsThemWhereNobodySaysHowManyLast) {
  EXPECT_EQ(ThreadsUnder("idle", {.allowed = 4, .usable = 2}), 2);
  EXPECT_EQ(ThreadsUnder("idle", {.allowed = 4, .usable = 4}), 4);
}

TEST(TrainerThreads, ThePolicyThatHeedsLimitsMayGiveOneForEachCore) {
  EXPECT_EQ(ThreadsUnder("tandem", {.allowed = 4, .usable = 2}), 4);
  EXPECT_EQ(ThreadsUnder("tandem", {.allowed = 4, .usable = 2}, false), 2) << "a limit whose use cannot be read";
}

TEST(TrainerThreads, OnCoresOfTheirOwnThereIsOneForEach) {
  EXPECT_EQ(ThreadsUnder("partition", {.allowed = 7, .usable = 1}), 3);
  EXPECT_EQ(ThreadsUnder("partition", {.allowed = 1, .usable = 1}), 1) << "nothing to divide";
}

TEST(ThreadsBesideRuns, AreTheCoresThatRunsLeave) {
  EXPECT_EQ(ThreadsBesideRuns(2, 0, 2), 2);
  EXPECT_EQ(ThreadsBesideRuns(2, 1, 2), 1);
  EXPECT_EQ(ThreadsBesideRuns(8, 3, 8), 5);
}

TEST(ThreadsBesideRuns, TrainersThatShareTheCoresShareWhatIsLeft) {
  EXPECT_EQ(ThreadsBesideRuns(4, 4, 8), 2);
  EXPECT_EQ(ThreadsBesideRuns(4, 0, 8), 4);
}

TEST(ThreadsBesideRuns, NobodyIsLeftWithNone) {
  EXPECT_EQ(ThreadsBesideRuns(1, 1, 2), 1);
  EXPECT_EQ(ThreadsBesideRuns(2, 2, 2), 1);
  EXPECT_EQ(ThreadsBesideRuns(2, 0xffff, 2), 1) << "all of them";
  EXPECT_EQ(ThreadsBesideRuns(1, 0, 0), 1);
}

}  // namespace
}  // namespace tandem
