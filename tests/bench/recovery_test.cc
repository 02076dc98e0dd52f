#include "bench/recovery.h"

#include <gtest/gtest.h>

namespace tandem::bench {
namespace {

// One request every 10 ms for 2 s, missed before `until`.
std::vector<LaterRequest> MissedUntil(double until) {
  std::vector<LaterRequest> requests;
  for (int i = 0; i < 200; ++i) requests.push_back({.due = 0.01 * i, .missed = 0.01 * i < until});
  return requests;
}

TEST(Recovery, IsOverWithTheLastMiss) {
  EXPECT_EQ(LastMissed({}), 0);
  EXPECT_EQ(LastMissed(MissedUntil(0)), 0);
  EXPECT_NEAR(LastMissed(MissedUntil(0.3)), 0.29, 1e-9);
  EXPECT_NEAR(RecoveredAfter(MissedUntil(0.3), 1), 0.29, 1e-9);
  EXPECT_EQ(RecoveredAfter(MissedUntil(0), 1), 0);
  EXPECT_EQ(RecoveredAfter({}, 0.99), 0);
}

TEST(Recovery, ASingleMissAtTheEndIsNoneOfTheOverloads) {
  std::vector<LaterRequest> requests = MissedUntil(0.3);
  requests[190].missed = true;
  EXPECT_NEAR(LastMissed(requests), 1.9, 1e-9);
  // 1 % of the 171 that follow is that one and a part: one more of the early ones does not fit in.
  EXPECT_NEAR(RecoveredAfter(requests, 0.99), 0.29, 1e-9);
}

TEST(Recovery, TheSecondAfterHasTheRequestsThatAreDueInIt) {
  EXPECT_NEAR(InTimeUntil(MissedUntil(0.3), 1), 0.7, 1e-9);
  EXPECT_NEAR(InTimeUntil(MissedUntil(9), 1), 0, 1e-9);
  EXPECT_EQ(InTimeUntil({}, 1), 1);
}

TEST(Recovery, WhatGoesOnMissingHasNotRecovered) {
  EXPECT_NEAR(RecoveredAfter(MissedUntil(9), 0.99), 1.99, 1e-9);
}

}  // namespace
}  // namespace tandem::bench
