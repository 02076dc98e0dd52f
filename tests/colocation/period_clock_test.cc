#include "colocation/period_clock.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace tandem {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

constexpr nanoseconds kPeriod = 100ms;
constexpr nanoseconds kPhase = 37ms + 200us;  // Periods begin at kPhase + n × kPeriod.

// What the kernel would have counted of a group that always has something to run.
std::uint64_t Count(MonotonicTime time) {
  return static_cast<std::uint64_t>((time.time_since_epoch() - kPhase) / kPeriod);
}

void LookAt(PeriodClock& clock, nanoseconds at) {
  clock.Look(MonotonicTime(at), MonotonicTime(at + 10us), Count(MonotonicTime(at + 5us)));
}

TEST(PeriodClock, LearnsFromTwoLooksCloseToOneAnother) {
  PeriodClock clock(kPeriod);
  LookAt(clock, 1036ms);
  EXPECT_FALSE(clock.known());
  LookAt(clock, 1037ms);
  EXPECT_FALSE(clock.known()) << "none has begun";
  LookAt(clock, 1038ms);
  ASSERT_TRUE(clock.known());
  const MonotonicTime next = clock.NextAfter(MonotonicTime(5s));
  EXPECT_GE(next, MonotonicTime(5037ms - PeriodClock::kLate)) << "at the earliest";
  EXPECT_LE(next, MonotonicTime(5037ms + 200us));
  EXPECT_GT(clock.NextAfter(next), next);
}

TEST(PeriodClock, DoesNotLearnFromLooksFarApart) {
  PeriodClock clock(kPeriod);
  LookAt(clock, 1000ms);
  LookAt(clock, 1060ms);
  EXPECT_FALSE(clock.known());
}

TEST(PeriodClock, ForgetsWhenPeriodsBeginElsewhere) {
  PeriodClock clock(kPeriod);
  LookAt(clock, 1037ms);
  LookAt(clock, 1038ms);
  ASSERT_TRUE(clock.known());
  // The group was made anew: it counts from the beginning, or on another grid.
  clock.Look(MonotonicTime(1200ms), MonotonicTime(1200ms), 0);
  EXPECT_FALSE(clock.known());
  LookAt(clock, 2037ms);
  LookAt(clock, 2038ms);
  ASSERT_TRUE(clock.known());
  clock.Look(MonotonicTime(2060ms), MonotonicTime(2060ms), Count(MonotonicTime(2060ms)));
  clock.Look(MonotonicTime(2080ms), MonotonicTime(2080ms), Count(MonotonicTime(2060ms)) + 1);
  EXPECT_FALSE(clock.known()) << "one was counted where none begins";
}

TEST(PeriodClock, ForgetsAtACountThatCannotBe) {
  PeriodClock clock(kPeriod);
  LookAt(clock, 1037ms);
  LookAt(clock, 1038ms);
  clock.Look(MonotonicTime(1050ms), MonotonicTime(1050ms), ~std::uint64_t{0});
  EXPECT_FALSE(clock.known());
}

TEST(PeriodClock, StaysSureWhileNothingIsCounted) {
  PeriodClock clock(kPeriod);
  LookAt(clock, 1037ms);
  LookAt(clock, 1038ms);
  clock.Look(MonotonicTime(90s), MonotonicTime(90s), Count(MonotonicTime(1038ms)));
  clock.Look(MonotonicTime(91s), MonotonicTime(91s), Count(MonotonicTime(1038ms)) + 3);
  EXPECT_TRUE(clock.known());
}

TEST(PeriodClock, IsNeverLateAndNeverForgetsWhateverIsLookedAt) {
  const auto holds = rc::check("true beginnings", [](std::uint64_t seed) {
    PeriodClock clock(kPeriod);
    LookAt(clock, 1037ms);
    LookAt(clock, 1038ms);
    nanoseconds at = 1038ms;
    for (int i = 0; i < 300; ++i) {
      seed = seed * 6364136223846793005 + 1442695040888963407;
      at += nanoseconds((seed >> 33) % 150'000'000 + 20'000);
      LookAt(clock, at);
      RC_ASSERT(clock.known());
      const nanoseconds next = clock.NextAfter(MonotonicTime(at)).time_since_epoch();
      const nanoseconds into = (next - kPhase) % kPeriod;
      // Early by less than it was learnt to, or exact.
      RC_ASSERT(into == 0ns || into >= kPeriod - 2ms);
    }
  });
  EXPECT_TRUE(holds);
}

}  // namespace
}  // namespace tandem
