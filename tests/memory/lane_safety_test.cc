#include "memory/lane_safety.h"

#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace tandem {
namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

// With one session that needs all of it.
Lane LaneOf(std::uint64_t persistent, std::uint64_t ephemeral) {
  return {.id = LaneId{1},
          .length = ephemeral,
          .next = ephemeral,
          .sessions = {{.id = SessionId{7}, .need = {.persistent = persistent, .ephemeral = ephemeral}}}};
}

TEST(LaneSafety, WhatFitsIsAddedUp) {
  Lane growing = LaneOf(1, 20);
  growing.length = 5;
  Lane shrinking = LaneOf(2, 3);
  shrinking.length = 30;
  const auto use = CheckSafe(std::vector{growing, shrinking}, 53);
  ASSERT_TRUE(use) << use.error().message;
  EXPECT_EQ(*use, (LaneUse{.persistent = 3, .lanes = 50})) << "each lane with the larger of its lengths";
  EXPECT_FALSE(CheckSafe(std::vector{growing, shrinking}, 52));
}

TEST(LaneSafety, SumsThatWouldWrapAroundAreUnsafe) {
  EXPECT_TRUE(CheckSafe(std::vector{LaneOf(kMost - 1, 1)}, kMost));
  EXPECT_FALSE(CheckSafe(std::vector{LaneOf(kMost, 1)}, kMost));
  EXPECT_FALSE(CheckSafe(std::vector{LaneOf(1, kMost), LaneOf(kMost, 1)}, kMost));
}

TEST(LaneSafety, ALaneShorterThanASessionInItIsUnsafe) {
  Lane lane = LaneOf(1, 20);
  lane.next = 19;
  EXPECT_EQ(CheckSafe(std::vector{lane}, 100).error().message, "lane 1 is to have 19 bytes where its sessions need 20");
  lane.next = 21;
  EXPECT_FALSE(CheckSafe(std::vector{lane}, 100)) << "nor may it keep what nobody needs";
  lane.sessions.clear();
  EXPECT_FALSE(CheckSafe(std::vector{lane}, 100));
}

TEST(LaneSafetyDeathTest, WhatIsUnsafeEndsTheProcessInEveryBuild) {
  const std::vector lanes{LaneOf(40, 30), LaneOf(20, 11)};
  AssertSafe(lanes, 101);
  EXPECT_DEATH(AssertSafe(lanes, 100), "memory of lanes is not safe: lane 1 has 11 bytes where 10 of 100 are left");
}

}  // namespace
}  // namespace tandem
