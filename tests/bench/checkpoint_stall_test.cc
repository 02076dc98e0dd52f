#include "bench/checkpoint_stall.h"

#include <gtest/gtest.h>

namespace tandem::bench {
namespace {

TEST(CheckpointStall, IsWhatATurnTakesLongerThanItsNeighbours) {
  const auto stalls = CheckpointStalls(std::vector<double>{4, 4.5, 4, 5, 4});
  ASSERT_EQ(stalls.size(), 2U);
  EXPECT_DOUBLE_EQ(stalls[0].stall, 0.5);
  EXPECT_DOUBLE_EQ(stalls[1].stall, 1);
  EXPECT_DOUBLE_EQ(stalls[1].without, 4);
}

TEST(CheckpointStall, ATrainerThatGrowsSlowerHasNone) {
  for (const CheckpointStall& one : CheckpointStalls(std::vector<double>{4, 5, 6, 7, 8})) {
    EXPECT_DOUBLE_EQ(one.stall, 0);
  }
}

TEST(CheckpointStall, ATurnWithoutANeighbourAfterItIsLeftOut) {
  EXPECT_EQ(CheckpointStalls(std::vector<double>{4, 5, 4, 5}).size(), 1U);
  EXPECT_TRUE(CheckpointStalls(std::vector<double>{4, 5}).empty());
  EXPECT_TRUE(CheckpointStalls({}).empty());
}

}  // namespace
}  // namespace tandem::bench
