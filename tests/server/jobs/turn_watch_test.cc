#include "server/jobs/turn_watch.h"

#include <gtest/gtest.h>

#include "tests/fakes/jumping_clock.h"

namespace tandem::jobs {
namespace {

using namespace std::chrono_literals;

class TurnWatchTest : public testing::Test {
 protected:
  TurnWatch::Found After(std::chrono::nanoseconds time, bool close = true) {
    clock_.Advance(time);
    return watch_.Turn(clock_.Now(), clock_.WallNow(), close);
  }

  JumpingClock clock_;
  TurnWatch watch_;
};

TEST_F(TurnWatchTest, FindsNothingWhileAllIsWell) {
  for (int i = 0; i < 100; ++i) {
    clock_.JumpWall(i % 2 == 0 ? 1ms : -1ms);
    const auto found = After(200ms);
    EXPECT_FALSE(found.stood_still);
    EXPECT_FALSE(found.stepped);
  }
}

TEST_F(TurnWatchTest, FindsThatEverythingStoodStill) {
  EXPECT_FALSE(After(1h).stood_still) << "nothing was before";
  EXPECT_FALSE(After(TurnWatch::kFarApart - 1ms).stood_still);
  const auto found = After(7s);
  EXPECT_EQ(found.stood_still, 7s);
  EXPECT_FALSE(found.stepped) << "the time of day went along";
  EXPECT_FALSE(After(200ms).stood_still) << "once";
}

TEST_F(TurnWatchTest, FindsThatTheTimeOfDayWasSet) {
  EXPECT_FALSE(After(0s).stepped);
  clock_.JumpWall(1h);
  EXPECT_EQ(After(200ms).stepped, 1h);
  EXPECT_FALSE(After(200ms).stepped) << "once";
  clock_.JumpWall(-24h);
  EXPECT_EQ(After(200ms).stepped, -24h);
}

TEST_F(TurnWatchTest, FindsNothingWhereTurnsAreSeldom) {
  EXPECT_FALSE(After(0s).stood_still);
  clock_.JumpWall(10s);
  const auto found = After(24h, false);
  EXPECT_FALSE(found.stood_still);
  EXPECT_FALSE(found.stepped);
  EXPECT_FALSE(After(200ms).stepped) << "it was not between these two";
}

}  // namespace
}  // namespace tandem::jobs
