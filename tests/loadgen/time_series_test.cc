#include "loadgen/time_series.h"

#include <gtest/gtest.h>

namespace tandem::loadgen {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

void ExpectNear(nanoseconds got, nanoseconds want) {
  EXPECT_NEAR(static_cast<double>(got.count()), static_cast<double>(want.count()),
              static_cast<double>(want.count()) / 50);
}

TEST(TimeSeries, PutsRequestsWhereTheyWereDue) {
  TimeSeries series(100ms);
  series.Record(0ms, Outcome::kOk, 5ms);
  series.Record(99ms, Outcome::kLate, 700ms);
  series.Record(350ms, Outcome::kRejected, 1ms);
  series.Record(360ms, Outcome::kFailed, 0ms);
  const auto points = series.Points();
  ASSERT_EQ(points.size(), 4u);
  EXPECT_EQ(points[0].counts.ok, 1u);
  EXPECT_EQ(points[0].counts.late, 1u);
  EXPECT_EQ(points[0].max, 700ms);
  EXPECT_EQ(points[1].counts.total(), 0u);
  EXPECT_EQ(points[3].at, 300ms);
  EXPECT_EQ(points[3].counts.rejected, 1u);
  EXPECT_EQ(points[3].counts.failed, 1u);
  // What was not answered has no latency.
  EXPECT_EQ(points[3].max, 0ms);
}

TEST(TimeSeries, PercentilesAreThoseOfTheSlot) {
  TimeSeries series(1s);
  for (int i = 1; i <= 1000; ++i) series.Record(i * 1us, Outcome::kOk, i * 1ms);
  const auto points = series.Points();
  ASSERT_EQ(points.size(), 1u);
  ExpectNear(points[0].p50, 500ms);
  ExpectNear(points[0].p99, 990ms);
  EXPECT_EQ(points[0].max, 1000ms);
}

TEST(TimeSeries, ALongRunGetsWiderSlotsAndLosesNothing) {
  TimeSeries series(100ms);
  constexpr int kHours = 30;
  for (int second = 0; second < kHours * 3600; ++second) {
    series.Record(second * 1s, second % 10 == 0 ? Outcome::kLate : Outcome::kOk, second % 10 == 0 ? 2s : 10ms);
  }
  const auto points = series.Points();
  EXPECT_LE(points.size(), TimeSeries::kMaxSlots);
  EXPECT_GT(points.size(), TimeSeries::kMaxSlots / 4);
  OutcomeCounts all;
  for (const TimeSeries::Point& point : points) {
    all += point.counts;
    ExpectNear(point.p50, 10ms);
    ExpectNear(point.p99, 2s);
  }
  EXPECT_EQ(all.late, kHours * 360u);
  EXPECT_EQ(all.total(), kHours * 3600u);
}

TEST(TimeSeries, TakesLatenciesOfAnySize) {
  TimeSeries series(1s);
  series.Record(0s, Outcome::kOk, 300ns);
  series.Record(2s, Outcome::kOk, std::chrono::hours(1000));
  series.Record(-5s, Outcome::kOk, -5ns);
  const auto points = series.Points();
  EXPECT_EQ(points[0].max, 300ns);
  EXPECT_EQ(points[0].counts.ok, 2u);
  EXPECT_EQ(points[2].max, std::chrono::hours(1000));
  EXPECT_LE(points[2].p50, points[2].max);
}

}  // namespace
}  // namespace tandem::loadgen
