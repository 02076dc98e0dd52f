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

TEST(BatchPolicy, WaitsOnlyAsLongAsTheEarliestDeadlineAllows) {
  const BatchSettings settings{.max_batch_size = 4, .dynamic = true, .max_queue_delay = 100ms};
  const std::vector<std::int64_t> sizes{1};
  const auto choose = [&](std::chrono::nanoseconds deadline_in, std::chrono::nanoseconds expected_run) {
    return ChooseBatch({.settings = settings,
                        .sizes = sizes,
                        .oldest_wait = 0ns,
                        .earliest_deadline_in = deadline_in,
                        .expected_run = expected_run});
  };
  EXPECT_EQ(choose(500ms, 10ms).wait, 100ms);
  const BatchDecision hurried = choose(50ms, 10ms);
  EXPECT_EQ(hurried.take, 0u);
  EXPECT_LT(hurried.wait, 50ms - 10ms);
  EXPECT_GT(hurried.wait, 0ms);
  EXPECT_EQ(choose(20ms, 10ms).take, 1u);
  EXPECT_EQ(choose(-1ms, 10ms).take, 1u);
}

TEST(BatchPolicy, DoesNotWaitTowardsADeadlineWhenTheRunsTimeIsNotKnown) {
  const BatchSettings settings{.max_batch_size = 4, .dynamic = true, .max_queue_delay = 100ms};
  const std::vector<std::int64_t> sizes{1};
  EXPECT_EQ(ChooseBatch({.settings = settings, .sizes = sizes, .earliest_deadline_in = 50ms}).take, 1u);
  EXPECT_EQ(ChooseBatch({.settings = settings, .sizes = sizes, .earliest_deadline_in = 500ms}).wait, 100ms);
}

}  // namespace
}  // namespace tandem
