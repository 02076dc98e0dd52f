#include "api/base/poll_budget.h"

#include <vector>

#include <gtest/gtest.h>

namespace tandem {
namespace {

using namespace std::chrono_literals;

constexpr MonotonicTime kNow{5s};

int SleepsBeforeNextLook(PollBudget& budget) {
  int sleeps = 0;
  while (budget.Begin(kNow) == kNow) ++sleeps;
  return sleeps;
}

TEST(PollBudgetTest, LooksForTheWholeWindowWhileItFinds) {
  PollBudget budget(100us);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(budget.Begin(kNow), kNow + 100us);
    budget.Found();
  }
}

TEST(PollBudgetTest, LooksMoreAndMoreRarelyInVain) {
  PollBudget budget(100us);
  EXPECT_EQ(SleepsBeforeNextLook(budget), 0);
  std::vector<int> sleeps;
  for (int i = 0; i < 9; ++i) {
    budget.Missed();
    sleeps.push_back(SleepsBeforeNextLook(budget));
  }
  EXPECT_EQ(sleeps, (std::vector<int>{1, 2, 4, 8, 16, 32, 64, 64, 64}));
}

TEST(PollBudgetTest, OneFindMakesUpForAllMisses) {
  PollBudget budget(100us);
  for (int i = 0; i < 9; ++i) budget.Missed();
  SleepsBeforeNextLook(budget);
  budget.Found();
  EXPECT_EQ(SleepsBeforeNextLook(budget), 0);
  budget.Missed();
  EXPECT_EQ(SleepsBeforeNextLook(budget), 1);
}

TEST(PollBudgetTest, WithoutAWindowItAlwaysSleeps) {
  PollBudget budget(0us);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(budget.Begin(kNow), kNow);
}

}  // namespace
}  // namespace tandem
