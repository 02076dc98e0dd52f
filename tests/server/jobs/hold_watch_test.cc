#include "server/jobs/hold_watch.h"

#include <gtest/gtest.h>

namespace tandem::jobs {
namespace {

using namespace std::chrono_literals;
using Verdict = HoldWatch::Verdict;

class HoldWatchTest : public testing::Test {
 protected:
  // What becomes of one that does so for a while, looked at as often as the server does; what it uses goes on counting.
  Verdict After(std::chrono::nanoseconds time, bool held, double cores) {
    for (std::chrono::nanoseconds passed{0}; passed < time; passed += kTick) {
      used_ += std::chrono::duration_cast<std::chrono::nanoseconds>(kTick * cores);
      const Verdict verdict = watch_.Judge({.passed = kTick, .held = held, .used = used_});
      if (verdict != Verdict::kNone) return verdict;
    }
    return Verdict::kNone;
  }

  static constexpr std::chrono::milliseconds kTick{200};
  std::chrono::nanoseconds used_{0};
  HoldWatch watch_;
};

TEST_F(HoldWatchTest, NobodyIsToWaitWhoWasNotToldTo) {
  EXPECT_EQ(After(1h, false, 2), Verdict::kNone);
}

TEST_F(HoldWatchTest, WhoWaitsMayDoSoForDays) {
  watch_.Begin();
  EXPECT_EQ(After(HoldWatch::kBound - kTick, false, 2), Verdict::kNone) << "in a long operator";
  EXPECT_EQ(After(48h, true, 0.001), Verdict::kNone) << "it looks for orders";
}

TEST_F(HoldWatchTest, WhoDoesNotWaitIsStoppedAndTheNextTimeKilled) {
  watch_.Begin();
  EXPECT_EQ(After(HoldWatch::kBound - kTick, false, 1), Verdict::kNone);
  EXPECT_EQ(After(kTick, false, 0), Verdict::kStop);
  EXPECT_EQ(After(1h, false, 0), Verdict::kNone) << "once";
  watch_.End();
  EXPECT_EQ(After(1h, false, 1), Verdict::kNone) << "it may run";
  watch_.Begin();
  EXPECT_EQ(After(HoldWatch::kBound - kTick, false, 1), Verdict::kNone);
  EXPECT_EQ(After(kTick, false, 1), Verdict::kKill);
}

TEST_F(HoldWatchTest, WhoSaysThatItWaitsAndComputesDoesNotWait) {
  watch_.Begin();
  EXPECT_EQ(After(HoldWatch::kBound, true, 1), Verdict::kNone);
  EXPECT_EQ(After(HoldWatch::kMostUse, true, 1), Verdict::kNone) << "it may write down what it has";
  EXPECT_EQ(After(kTick, true, 1), Verdict::kStop);
  watch_.End();
  watch_.Begin();
  EXPECT_EQ(After(10 * HoldWatch::kBound, true, 0.05), Verdict::kNone) << "a little each time does not add up";
  EXPECT_EQ(After(2 * HoldWatch::kBound, true, 0.2), Verdict::kKill);
}

TEST_F(HoldWatchTest, WhoBeginsAgainWhileItIsToWaitIsFound) {
  watch_.Begin();
  EXPECT_EQ(After(1h, true, 0), Verdict::kNone);
  EXPECT_EQ(After(kTick, false, 0), Verdict::kStop);
}

}  // namespace
}  // namespace tandem::jobs
