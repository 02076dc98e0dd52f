#include "bench/better_policies.h"

#include <gtest/gtest.h>

namespace tandem::bench {
namespace {

TEST(BetterPolicies, AreThoseThatWinInBothInMostRounds) {
  const PolicyRounds first{.p99 = {10, 10, 10}, .kept = {5, 5, 5}};
  const PolicyRounds twice{.p99 = {9, 9, 11}, .kept = {6, 6, 6}};
  const PolicyRounds once{.p99 = {9, 11, 11}, .kept = {6, 6, 6}};
  const PolicyRounds faster{.p99 = {1, 1, 1}, .kept = {4, 4, 4}};
  EXPECT_EQ(BetterByRounds(std::vector{first, twice, once, faster}), 1);
  EXPECT_EQ(BetterByRounds(std::vector{twice, first, once, faster}), 0);
}

TEST(BetterPolicies, HalfOfTheRoundsIsChance) {
  const PolicyRounds first{.p99 = {10, 12}, .kept = {5, 6}};
  const PolicyRounds other{.p99 = {9, 13}, .kept = {6, 5}};
  EXPECT_EQ(BetterByRounds(std::vector{first, other}), 0);
  EXPECT_EQ(BetterByRounds(std::vector{other, first}), 0);
}

// The other answers sooner in one round and trains more in others, but never both.
TEST(BetterPolicies, MediansMayBeBetterWhereNoRoundIs) {
  const PolicyRounds first{.p99 = {10, 20, 30}, .kept = {3, 2, 1}};
  const PolicyRounds other{.p99 = {11, 31, 19}, .kept = {4, 3, 1}};
  EXPECT_EQ(BetterByRounds(std::vector{first, other}), 0);
  EXPECT_EQ(BetterByMedians(std::vector{first, other}), 1);
  EXPECT_EQ(BetterByMedians(std::vector{other, first}), 0);
}

}  // namespace
}  // namespace tandem::bench
