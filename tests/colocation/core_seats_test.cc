#include "colocation/core_seats.h"

#include <future>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "profiler/machine.h"
#include "tests/fakes/forbid_calls.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;

// As others do it: an administrator, or the kernel when cores go or a cpuset changes.
void KeepTo(int thread, const std::vector<int>& cores) {
  const cpu_set_t set = CoreSet(cores);
  EXPECT_EQ(::sched_setaffinity(thread, sizeof set, &set), 0);
}

// A thread that does nothing but have cores, until this goes.
class Bystander {
 public:
  Bystander()
      : thread_([this] {
          told_.set_value(::gettid());
          over_.get_future().wait();
        }),
        number_(told_.get_future().get()) {}
  ~Bystander() {
    over_.set_value();
    thread_.join();
  }
  Bystander(const Bystander&) = delete;
  Bystander& operator=(const Bystander&) = delete;

  [[nodiscard]] int number() const { return number_; }

 private:
  std::promise<int> told_;
  std::promise<void> over_;
  std::thread thread_;
  const int number_;
};

TEST(CoreSeats, AThreadKeepsToTheCoreOfItsSeat) {
  const std::vector<int> cores = AllowedCoreNumbers();
  ASSERT_FALSE(cores.empty());
  CoreSeats seats({cores.back(), cores.front()});
  std::thread([&] {
    EXPECT_TRUE(seats.Take(0));
    EXPECT_EQ(::sched_getcpu(), cores.back());
    EXPECT_THAT(AllowedCoreNumbers(), ElementsAre(cores.back()));
    EXPECT_TRUE(seats.Take(1));
    EXPECT_THAT(AllowedCoreNumbers(), ElementsAre(cores.front()));
  }).join();
  EXPECT_EQ(AllowedCoreNumbers(), cores) << "other threads go where they like";
}

TEST(CoreSeats, WhereThereIsNoSeatAThreadStaysAsItWas) {
  const std::vector<int> cores = AllowedCoreNumbers();
  EXPECT_FALSE(CoreSeats({}).Take(0));
  EXPECT_FALSE(CoreSeats({cores.front()}).Take(1));
  EXPECT_FALSE(CoreSeats({CPU_SETSIZE - 1}).Take(0)) << "a core that is not there";
  CoreSitter(nullptr).Sit(0);
  EXPECT_EQ(AllowedCoreNumbers(), cores);
}

TEST(CoreSeats, ARefusalIsToldOnceAndACoreThatIsNotThereIsNone) {
  const std::vector<int> cores = AllowedCoreNumbers();
  std::vector<std::string> told;
  const CoreSeats::News news{.refused = [&](const std::string& reason) { told.push_back(reason); }, .anew = {}};
  std::thread([&] {
    CoreSeats gone({CPU_SETSIZE - 1}, news);
    EXPECT_FALSE(gone.Take(0));
    EXPECT_TRUE(told.empty());
    CoreSeats seats({cores.front(), cores.back()}, news);
    ASSERT_TRUE(ForbidCalls({SYS_sched_setaffinity}));
    EXPECT_FALSE(seats.Take(0));
    EXPECT_FALSE(seats.Take(1));
  }).join();
  EXPECT_THAT(told, ElementsAre("Operation not permitted"));
}

// Two cores: the first is a worker's, the second that of the pool's only thread.
class MovedThreadsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (all_.size() < 2) GTEST_SKIP() << "there is one core only";
    seats_.SeatPool({pool_.number()});
    KeepTo(pool_.number(), {all_[1]});
  }

  const std::vector<int> all_ = AllowedCoreNumbers();
  const std::vector<int> two_{all_.begin(), all_.begin() + (all_.size() < 2 ? 1 : 2)};
  const Bystander pool_;
  int anew_ = 0;
  CoreSeats seats_{two_, {.refused = {}, .anew = [this] { ++anew_; }}};
};

TEST_F(MovedThreadsTest, TakeTheirSeatsAnew) {
  EXPECT_FALSE(seats_.Look()) << "all is as it should be";
  std::thread([&] {
    CoreSitter sitter(&seats_);
    sitter.Sit(0);
    EXPECT_THAT(AllowedCoreNumbers(), ElementsAre(all_[0]));
    KeepTo(0, all_);
    KeepTo(pool_.number(), all_);
    sitter.Sit(0);
    EXPECT_EQ(AllowedCoreNumbers(), all_) << "nobody has looked, and to see it costs a system call";
    // By somebody who has no seat.
    std::async(std::launch::async, [&] { EXPECT_TRUE(seats_.Look()); }).get();
    EXPECT_THAT(AllowedCoreNumbers(pool_.number()), ElementsAre(all_[1]));
    sitter.Sit(0);
    EXPECT_THAT(AllowedCoreNumbers(), ElementsAre(all_[0]));
  }).join();
  EXPECT_EQ(anew_, 1);
  EXPECT_FALSE(seats_.Look());
  EXPECT_EQ(anew_, 1);
}

TEST_F(MovedThreadsTest, GoWhereTheyMayWhileTheirCoreIsGone) {
  const auto look = [&](const std::vector<int>& there) {
    bool found = false;
    std::thread([&] {
      KeepTo(0, there);
      found = seats_.Look();
    }).join();
    return found;
  };
  std::thread([&] {
    CoreSitter sitter(&seats_);
    sitter.Sit(1);
    KeepTo(pool_.number(), {all_[0]});
    EXPECT_TRUE(look({all_[0]})) << "a core has gone";
    EXPECT_FALSE(look({all_[0]}));
    EXPECT_THAT(AllowedCoreNumbers(pool_.number()), ElementsAre(all_[0])) << "where it was put";
    sitter.Sit(1);
    EXPECT_THAT(AllowedCoreNumbers(), ElementsAre(all_[0])) << "what is left";
    EXPECT_TRUE(look(all_)) << "it is back";
    EXPECT_THAT(AllowedCoreNumbers(pool_.number()), ElementsAre(all_[1]));
    sitter.Sit(1);
    EXPECT_THAT(AllowedCoreNumbers(), ElementsAre(all_[1]));
  }).join();
}

}  // namespace
}  // namespace tandem
