#include "profiler/run_log.h"

#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace tandem {
namespace {

using namespace std::chrono_literals;

constexpr MonotonicTime kNow(1h);

TEST(RunLog, HandsOverWhatRanWhileSomebodyWatches) {
  RunLog log;
  log.Add("m", kNow, 5ms, 4ms);
  EXPECT_TRUE(log.Take().empty()) << "nobody watched";
  log.Watch(true);
  log.Add("m", kNow, 5ms, 4ms);
  log.Add("other", kNow + 1ms, 2ms, 4ms);
  log.Add("m", kNow, 5ms, 0ms);  // What is typical is not known.
  const auto runs = log.Take();
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0].model, "m");
  EXPECT_EQ(runs[0].began, kNow - 5ms);
  EXPECT_DOUBLE_EQ(runs[0].ratio, 1.25);
  EXPECT_EQ(runs[1].model, "other");
  EXPECT_TRUE(log.Take().empty());
}

TEST(RunLog, IsBounded) {
  RunLog log;
  log.Watch(true);
  for (std::size_t i = 0; i < 2 * RunLog::kMostSamples; ++i) log.Add("m", kNow, 5ms, 4ms);
  EXPECT_EQ(log.Take().size(), RunLog::kMostSamples);
  for (std::size_t i = 0; i < 2 * RunLog::kMostModels; ++i) log.Add(std::to_string(i), kNow, 5ms, 4ms);
  EXPECT_EQ(log.Take().size(), RunLog::kMostModels - 1) << "m is there already";
}

TEST(RunLog, TakesFromManyThreads) {
  RunLog log;
  log.Watch(true);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&log, t] {
      for (int i = 0; i < 100; ++i) log.Add(std::to_string(t), kNow, 5ms, 4ms);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(log.Take().size(), 400U);
}

}  // namespace
}  // namespace tandem
