#include "bench/run_queue.h"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include "api/base/thread_name.h"

namespace tandem::bench {
namespace {

using namespace std::chrono_literals;

TEST(ParseSchedstat, TakesTheWaitAndTheSlices) {
  const auto wait = ParseSchedstat("110103 950646 2\n");
  ASSERT_TRUE(wait);
  EXPECT_EQ(wait->waited, 950646ns);
  EXPECT_EQ(wait->slices, 2);
  for (const char* text : {"", "1 2", "1 2 x", "-1 2 3", "none"}) EXPECT_FALSE(ParseSchedstat(text)) << text;
}

TEST(AnswersRequests, GoesByTheNamesOfThreads) {
  for (const char* name : {"worker-0", "ort-pool", "http-1"}) EXPECT_TRUE(AnswersRequests(name)) << name;
  for (const char* name : {"arbiter", "jobs", "tandem", "metrics-http", "log"}) EXPECT_FALSE(AnswersRequests(name));
}

TEST(LongestDelay, IsThatOfTheThreadThatWaitedLongest) {
  const std::vector<ThreadWait> before = {{1, 100us, 10}, {2, 0us, 5}, {3, 5ms, 1}};
  const std::vector<ThreadWait> after = {{1, 400us, 20}, {2, 200us, 6}, {3, 5ms, 1}, {4, 9ms, 1}};
  EXPECT_EQ(LongestDelay(before, after), 300us);
  EXPECT_EQ(LongestDelay(after, after), 0ns);
  EXPECT_EQ(LongestDelay({}, after), 0ns);
}

TEST(RunQueueWatch, SeesThreadsOfTheRightNamesGetACore) {
  std::atomic<bool> named{false};
  std::atomic<int> turns{0};
  std::jthread worker([&](const std::stop_token& stop) {
    NameThread("worker-7");
    named = true;
    while (!stop.stop_requested()) {
      std::this_thread::sleep_for(1ms);
      ++turns;
    }
  });
  while (!named) std::this_thread::yield();
  const auto watch = RunQueueWatch::Of(getpid());
  if (!watch) GTEST_SKIP() << watch.error().message;
  const auto before = watch->Look();
  for (const int until = turns + 10; turns < until;) std::this_thread::sleep_for(1ms);
  const auto after = watch->Look();
  ASSERT_TRUE(before && after);
  ASSERT_EQ(after->size(), 1U);
  EXPECT_GE(after->front().slices - before->front().slices, 9);
  EXPECT_GE(after->front().waited, before->front().waited);
}

TEST(RunQueueWatch, AProcessWithoutSuchThreadsIsRefused) {
  EXPECT_FALSE(RunQueueWatch::Of(getpid()));
  EXPECT_FALSE(RunQueueWatch::Of(-1));
}

}  // namespace
}  // namespace tandem::bench
