#include "bench/alternating_turns.h"

#include <gtest/gtest.h>

namespace tandem::bench {
namespace {

TEST(AlternatingTurns, CostIsWhatATurnTakesLongerThanItsNeighbours) {
  const auto costs = CostsOfEveryOther(std::vector<double>{4, 4.5, 4, 5, 4});
  ASSERT_EQ(costs.size(), 2U);
  EXPECT_DOUBLE_EQ(costs[0].more, 0.5);
  EXPECT_DOUBLE_EQ(costs[1].more, 1);
  EXPECT_DOUBLE_EQ(costs[1].without, 4);
}

TEST(AlternatingTurns, ATrainerThatGrowsSlowerHasNoCost) {
  for (const TurnCost& one : CostsOfEveryOther(std::vector<double>{4, 5, 6, 7, 8})) {
    EXPECT_DOUBLE_EQ(one.more, 0);
  }
}

TEST(AlternatingTurns, ATurnWithoutANeighbourAfterItIsLeftOut) {
  EXPECT_EQ(CostsOfEveryOther(std::vector<double>{4, 5, 4, 5}).size(), 1U);
  EXPECT_TRUE(CostsOfEveryOther(std::vector<double>{4, 5}).empty());
  EXPECT_TRUE(CostsOfEveryOther({}).empty());
}

}  // namespace
}  // namespace tandem::bench
