#include "colocation/device_slots.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using ::testing::ElementsAre;

constexpr MonotonicTime kNow{1h};

std::vector<nanoseconds> RestsOf(const DeviceSlots& slots, MonotonicTime now) {
  std::vector<nanoseconds> rests{99s};
  slots.Rests(now, rests);
  return rests;
}

TEST(DeviceSlots, ARunOnAllThreadsIsUnderWayAlone) {
  DeviceSlots slots(3, true);
  slots.Begin(1, RunWidth::kAll, kNow, kNow + 8ms);
  EXPECT_TRUE(slots.full());
  EXPECT_EQ(slots.taken(), DeviceSlots::kAllThreads);
  EXPECT_THAT(RestsOf(slots, kNow + 2ms), ElementsAre(6ms, 6ms, 6ms));
  slots.End(1, kNow + 9ms);
  EXPECT_FALSE(slots.full());
  EXPECT_EQ(slots.free_since(), kNow + 9ms);
  EXPECT_EQ(slots.running(), 0);
  EXPECT_EQ(slots.taken(), 0);
  EXPECT_THAT(RestsOf(slots, kNow), ElementsAre(0ms, 0ms, 0ms));
}

TEST(DeviceSlots, RunsOnOneThreadStandBesideEachOther) {
  DeviceSlots slots(2, true);
  slots.Begin(0, RunWidth::kOne, kNow, kNow + 8ms);
  EXPECT_FALSE(slots.full());
  EXPECT_THAT(RestsOf(slots, kNow + 9ms), ElementsAre(0ms, 0ms)) << "longer than expected";
  slots.Begin(1, RunWidth::kOne, kNow, kNow + 4ms);
  EXPECT_TRUE(slots.full());
  EXPECT_EQ(slots.taken(), 2);
  EXPECT_THAT(RestsOf(slots, kNow), ElementsAre(8ms, 4ms));
  slots.End(0, kNow + 8ms);
  EXPECT_EQ(slots.taken(), 1);
}

TEST(DeviceSlots, EachRunHasASeatOfItsOwn) {
  DeviceSlots slots(3, true);
  EXPECT_EQ(slots.Begin(1, RunWidth::kAll, kNow, kNow + 8ms), 0U) << "the others of all threads have the rest";
  slots.End(1, kNow);
  EXPECT_EQ(slots.Begin(0, RunWidth::kOne, kNow, kNow + 8ms), 0U);
  EXPECT_EQ(slots.Begin(1, RunWidth::kOne, kNow, kNow + 8ms), 1U) << "its own is taken";
  EXPECT_EQ(slots.Begin(2, RunWidth::kOne, kNow, kNow + 8ms), 2U);
  slots.End(0, kNow);
  slots.End(1, kNow);
  EXPECT_EQ(slots.Begin(1, RunWidth::kOne, kNow, kNow + 8ms), 1U) << "it stays where it is";
  slots.End(2, kNow);
  EXPECT_EQ(slots.Begin(0, RunWidth::kOne, kNow, kNow + 8ms), 0U);
}

TEST(DeviceSlots, WithoutWidthsWorkersShareAllThreads) {
  DeviceSlots slots(2, false);
  slots.Begin(0, RunWidth::kAll, kNow, kNow + 8ms);
  EXPECT_FALSE(slots.full());
  EXPECT_EQ(slots.taken(), DeviceSlots::kAllThreads);
  EXPECT_THAT(RestsOf(slots, kNow), ElementsAre(8ms, 0ms));
  slots.End(0, kNow + 8ms);
  EXPECT_EQ(slots.free_since(), MonotonicTime::min()) << "nobody waits for the others";
}

TEST(DeviceSlots, ARunIsOverdueAQuarterAfterItsExpectedEnd) {
  DeviceSlots slots(2, true);
  EXPECT_EQ(slots.OverdueAt(), MonotonicTime::max());
  slots.Begin(0, RunWidth::kOne, kNow, kNow + 80ms);
  EXPECT_EQ(slots.OverdueAt(), kNow + 100ms);
  slots.Begin(1, RunWidth::kOne, kNow + 1ms, kNow + 1ms);
  EXPECT_EQ(slots.OverdueAt(), kNow + 2ms) << "of which nothing was known";
  slots.End(1, kNow);
  EXPECT_EQ(slots.OverdueAt(), kNow + 100ms);
}

}  // namespace
}  // namespace tandem
