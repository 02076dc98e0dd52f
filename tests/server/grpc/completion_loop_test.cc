#include "server/grpc/completion_loop.h"

#include <atomic>
#include <optional>
#include <thread>

#include <grpc/support/time.h>
#include <grpcpp/alarm.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

namespace tandem::grpc_front {
namespace {

// Comes back on its queue as soon as the loop looks.
class Event final : public Operation {
 public:
  void Begin(CompletionLoop& loop) { alarm_.Set(&loop.queue(), gpr_now(GPR_CLOCK_MONOTONIC), this); }
  void Done(bool /*ok*/) override {
    thread_ = std::this_thread::get_id();
    done_.store(true, std::memory_order_release);
  }
  [[nodiscard]] std::thread::id Wait() const {
    while (!done_.load(std::memory_order_acquire)) std::this_thread::yield();
    return thread_;
  }

 private:
  grpc::Alarm alarm_;
  std::thread::id thread_;
  std::atomic<bool> done_{false};
};

class CompletionLoopTest : public ::testing::Test {
 protected:
  CompletionLoop& Make(std::chrono::nanoseconds poll_window) {
    return loop_.emplace(builder_.AddCompletionQueue(), RealClock::Instance(), poll_window, [this] {
      asked_.fetch_add(1);
      return may_poll_.load();
    });
  }

  grpc::ServerBuilder builder_;
  std::atomic<bool> may_poll_{true};
  std::atomic<int> asked_{0};
  std::optional<CompletionLoop> loop_;
};

TEST_F(CompletionLoopTest, HandlesWhatComesBackOnItsOwnThread) {
  CompletionLoop& loop = Make(std::chrono::microseconds(10));
  loop.Start();
  Event first;
  Event second;
  first.Begin(loop);
  const std::thread::id thread = first.Wait();
  second.Begin(loop);
  EXPECT_EQ(second.Wait(), thread);
  EXPECT_NE(thread, std::this_thread::get_id());
}

TEST_F(CompletionLoopTest, LooksForMoreWithoutSleepingAndFindsIt) {
  CompletionLoop& loop = Make(std::chrono::hours(1));
  loop.Start();
  while (asked_.load() < 100) std::this_thread::yield();
  Event event;
  event.Begin(loop);
  (void)event.Wait();
  const int before = asked_.load();
  while (asked_.load() < before + 100) std::this_thread::yield();
}

TEST_F(CompletionLoopTest, SleepsAtOnceWhenItMayNotPoll) {
  may_poll_ = false;
  CompletionLoop& loop = Make(std::chrono::hours(1));
  loop.Start();
  constexpr int kEvents = 20;
  for (int i = 0; i < kEvents; ++i) {
    Event event;
    event.Begin(loop);
    (void)event.Wait();
  }
  loop.Stop();
  // Once before every sleep.
  EXPECT_LE(asked_.load(), kEvents + 1);
}

TEST_F(CompletionLoopTest, StopsLookingWhenARequestIsBegunMeanwhile) {
  CompletionLoop& loop = Make(std::chrono::hours(1));
  loop.Start();
  while (asked_.load() < 100) std::this_thread::yield();
  may_poll_ = false;
  Event event;
  event.Begin(loop);
  (void)event.Wait();
  loop.Stop();
}

TEST_F(CompletionLoopTest, EndsWithoutHavingBeenStarted) {
  Make(std::chrono::microseconds(10)).Stop();
}

}  // namespace
}  // namespace tandem::grpc_front
