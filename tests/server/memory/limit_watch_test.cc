#include "server/memory/limit_watch.h"

#include <chrono>
#include <mutex>
#include <optional>

#include <gtest/gtest.h>

#include "tests/fakes/eventually.h"
#include "tests/fakes/fake_root.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;
using fakes::FakeRoot;

class LimitWatchTest : public ::testing::Test {
 protected:
  LimitWatchTest() {
    root_.Put("proc/self/cgroup", "0::/app\n");
    SetLimit("8000");
  }
  void SetLimit(const std::string& text) { root_.Put("sys/fs/cgroup/app/memory.max", text + "\n"); }
  void Watch(std::chrono::milliseconds period) {
    watch_ = std::make_unique<LimitWatch>(root_.path(), ReadMemoryThere(root_.path()), period,
                                          [this](const MemoryThere& there) {
                                            const std::scoped_lock lock(mu_);
                                            seen_ = there.limit.value_or(0);
                                            ++times_;
                                          });
  }
  bool Sees(std::uint64_t limit) {
    return Eventually([&] {
      const std::scoped_lock lock(mu_);
      return seen_ == limit;
    });
  }

  FakeRoot root_;
  std::mutex mu_;
  std::optional<std::uint64_t> seen_;
  int times_ = 0;
  std::unique_ptr<LimitWatch> watch_;
};

TEST_F(LimitWatchTest, HearsAtOnceOfALimitThatIsWritten) {
  Watch(24h);
  SetLimit("4000");
  EXPECT_TRUE(Sees(4000));
  SetLimit("max");
  EXPECT_TRUE(Sees(0));
}

TEST_F(LimitWatchTest, SeesInTimeWhatNobodyTellsOf) {
  Watch(5ms);
  // Another group's file, that nothing was there to watch.
  root_.Put("sys/fs/cgroup/app/inner/memory.max", "1000\n");
  root_.Put("proc/self/cgroup", "0::/app/inner\n");
  EXPECT_TRUE(Sees(1000));
}

TEST_F(LimitWatchTest, SaysNothingWhileNothingChanges) {
  Watch(1ms);
  SetLimit("4000");
  ASSERT_TRUE(Sees(4000));
  std::this_thread::sleep_for(20ms);
  watch_.reset();
  // A file that is being written may have been seen empty, once.
  EXPECT_LE(times_, 2);
}

TEST(MemoryThere, HasWhatTheMachineHas) {
  EXPECT_GT(ReadMemoryThere().device, 0U);
  EXPECT_LE(ReadMemoryThere().usable(), ReadMemoryThere().device);
}

}  // namespace
}  // namespace tandem
