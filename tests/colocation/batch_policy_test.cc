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
                        .left = {&deadline_in, 1},
                        .runs = {&expected_run, 1}});
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
  const auto choose = [&](std::chrono::nanoseconds left) {
    return ChooseBatch({.settings = settings, .sizes = sizes, .left = {&left, 1}});
  };
  EXPECT_EQ(choose(50ms).take, 1u);
  EXPECT_EQ(choose(500ms).wait, 100ms);
}

TEST(BatchPolicy, TakesTheLargestBatchThatIsInTimeForItsMostUrgent) {
  const BatchSettings settings{.max_batch_size = 4, .dynamic = true};
  const std::vector<std::int64_t> sizes{1, 1, 1, 1};
  const std::vector<std::chrono::nanoseconds> runs{10ms, 15ms, 20ms, 25ms};
  const auto take = [&](std::chrono::nanoseconds first, std::chrono::nanoseconds others) {
    const std::vector<std::chrono::nanoseconds> left{first, others, others, others};
    return ChooseBatch({.settings = settings, .sizes = sizes, .left = left, .runs = runs}).take;
  };
  EXPECT_EQ(take(50ms, 50ms), 4u);
  EXPECT_EQ(take(22ms, 50ms), 3u);
  EXPECT_EQ(take(17ms, 50ms), 2u);
  EXPECT_EQ(take(5ms, 50ms), 4u) << "the first is late alone: no reason to be late for the others";
  EXPECT_EQ(take(50ms, 17ms), 2u) << "the first is of a higher priority, the others more urgent";
  EXPECT_EQ(take(50ms, std::chrono::nanoseconds::max()), 4u) << "no deadline";
}

}  // namespace
}  // namespace tandem
