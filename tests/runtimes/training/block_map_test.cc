#include "runtimes/training/trainer/block_map.h"

#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace tandem::training {
namespace {

TEST(BlockMap, TheSmallestGapThatFitsIsTaken) {
  BlockMap map;
  const std::size_t large = map.Take(100);
  EXPECT_EQ(map.Take(1), 100U);
  const std::size_t small = map.Take(50);
  EXPECT_EQ(map.Take(1), 151U);
  map.GiveBack(large);
  map.GiveBack(small);
  EXPECT_EQ(map.Take(40), small);
  EXPECT_EQ(map.Take(60), large);
  EXPECT_EQ(map.Take(40), large + 60) << "what was left of the gap";
  EXPECT_EQ(map.end(), 152U);
}

TEST(BlockMap, GapsThatTouchAreOne) {
  BlockMap map;
  std::vector<std::size_t> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(map.Take(10));
  for (const int i : {0, 2, 1}) map.GiveBack(blocks[static_cast<std::size_t>(i)]);
  EXPECT_EQ(map.Take(30), 0U);
  EXPECT_EQ(map.end(), 40U);
}

TEST(BlockMap, AGapAtTheEndIsMadeLonger) {
  BlockMap map;
  const std::size_t first = map.Take(10);
  map.GiveBack(map.Take(5));
  EXPECT_EQ(map.Take(20), 10U);
  EXPECT_EQ(map.end(), 30U);
  map.GiveBack(first);
  map.GiveBack(10);
  EXPECT_EQ(map.Take(31), 0U);
  EXPECT_EQ(map.end(), 31U);
}

TEST(BlockMap, BlocksNeverOverlapAndTheSameStepsNeedLittleMore) {
  std::mt19937 random(7);
  BlockMap map;
  std::size_t after_two = 0;
  for (int step = 0; step < 50; ++step) {
    random.seed(7);
    std::map<std::size_t, std::size_t> taken;
    for (int i = 0; i < 2000; ++i) {
      if (!taken.empty() && random() % 2 == 0) {
        const auto victim = std::next(taken.begin(), static_cast<std::ptrdiff_t>(random() % taken.size()));
        map.GiveBack(victim->first);
        taken.erase(victim);
        continue;
      }
      const std::size_t size = 1 + random() % 1000;
      const auto [block, is_new] = taken.emplace(map.Take(size), size);
      ASSERT_TRUE(is_new);
      if (block != taken.begin()) {
        ASSERT_LE(std::prev(block)->first + std::prev(block)->second, block->first);
      }
      if (const auto next = std::next(block); next != taken.end()) {
        ASSERT_LE(block->first + size, next->first);
      }
      ASSERT_LE(block->first + size, map.end());
    }
    for (const auto& [offset, size] : taken) map.GiveBack(offset);
    if (step == 1) after_two = map.end();
  }
  EXPECT_LT(map.end(), after_two + after_two / 50);
}

}  // namespace
}  // namespace tandem::training
