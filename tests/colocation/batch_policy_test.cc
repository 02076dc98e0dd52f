#include "colocation/batch_policy.h"

#include <vector>

#include <gtest/gtest.h>

namespace tandem {
namespace {

using namespace std::chrono_literals;

BatchDecision Choose(const BatchSettings& settings, const std::vector<std::int64_t>& sizes,
                     std::chrono::nanoseconds oldest_wait = 0ns) {
  return ChooseBatch({.settings = settings, .sizes = sizes, .oldest_wait = oldest_wait});
}

TEST(BatchPolicy, RunsOneRequestWhenTheModelCannotBatch) {
  EXPECT_EQ(Choose({.max_batch_size = 0}, {1, 1, 1}).take, 1u);
  EXPECT_EQ(Choose({.max_batch_size = 8, .dynamic = false}, {1, 1}).take, 1u);
}

TEST(BatchPolicy, TakesEverythingThatFitsAtOnceByDefault) {
  EXPECT_EQ(Choose({.max_batch_size = 8, .dynamic = true}, {1, 1, 1}).take, 3u);
  EXPECT_EQ(Choose({.max_batch_size = 4, .dynamic = true}, {1, 2, 1, 1}).take, 3u);
  EXPECT_EQ(Choose({.max_batch_size = 4, .dynamic = true}, {3, 2}).take, 1u);
}

TEST(BatchPolicy, WaitsForAFullBatchWhileTheDelayLasts) {
  const BatchSettings settings{.max_batch_size = 4, .dynamic = true, .max_queue_delay = 100us};
  EXPECT_EQ(Choose(settings, {1, 1}, 30us).take, 0u);
  EXPECT_EQ(Choose(settings, {1, 1}, 30us).wait, 70us);
  EXPECT_EQ(Choose(settings, {1, 1}, 100us).take, 2u);
  EXPECT_EQ(Choose(settings, {1, 1, 1, 1}, 0us).take, 4u);
}

TEST(BatchPolicy, DoesNotWaitWhenTheNextRequestWouldNotFit) {
  const BatchSettings settings{.max_batch_size = 4, .dynamic = true, .max_queue_delay = 100us};
  EXPECT_EQ(Choose(settings, {3, 2}, 0us).take, 1u);
}

TEST(BatchPolicy, TakesTheLargestPreferredSizeAtOnce) {
  const BatchSettings settings{
      .max_batch_size = 8, .dynamic = true, .preferred_sizes = {2, 4}, .max_queue_delay = 100us};
  EXPECT_EQ(Choose(settings, {1, 1, 1, 1, 1}).take, 4u);
  EXPECT_EQ(Choose(settings, {1, 1, 1}).take, 2u);
  EXPECT_EQ(Choose(settings, {1}).take, 0u);
  EXPECT_EQ(Choose(settings, {1}, 100us).take, 1u);
}

}  // namespace
}  // namespace tandem
