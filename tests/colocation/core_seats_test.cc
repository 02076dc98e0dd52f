#include "colocation/core_seats.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include "profiler/machine.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;

TEST(CoreSeats, AThreadKeepsToTheCoreOfItsSeat) {
  const std::vector<int> cores = AllowedCoreNumbers();
  ASSERT_FALSE(cores.empty());
  const CoreSeats seats({cores.back(), cores.front()});
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
  EXPECT_FALSE(CoreSeats().Take(0));
  EXPECT_FALSE(CoreSeats({cores.front()}).Take(1));
  EXPECT_FALSE(CoreSeats({CPU_SETSIZE - 1}).Take(0)) << "a core that is not there";
  EXPECT_EQ(AllowedCoreNumbers(), cores);
}

}  // namespace
}  // namespace tandem
