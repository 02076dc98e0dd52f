#include "loadgen/latency_histogram.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace tandem::loadgen {
namespace {

using std::chrono::nanoseconds;

// Values spread evenly over the orders of magnitude, from 1 ns to 10 hours.
rc::Gen<std::int64_t> Durations() {
  return rc::gen::map(rc::gen::inRange(0, 45'200), [](int thousandth_of_octave) {
    return static_cast<std::int64_t>(std::exp2(thousandth_of_octave / 1000.0));
  });
}

std::int64_t ExactPercentile(std::vector<std::int64_t> values, double percent) {
  std::ranges::sort(values);
  const auto rank = static_cast<std::size_t>(std::ceil(percent / 100 * static_cast<double>(values.size()) - 1e-9));
  return values[std::clamp<std::size_t>(rank, 1, values.size()) - 1];
}

RC_GTEST_PROP(LatencyHistogram, EveryPercentileIsWithinOneThousandthOfTheRecordedValue, ()) {
  const auto values = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::int64_t>>(Durations()));
  LatencyHistogram histogram;
  for (const std::int64_t value : values) histogram.Record(nanoseconds(value));
  for (const double percent : {0.0, 1.0, 50.0, 90.0, 99.0, 99.9, 99.99, 100.0}) {
    const std::int64_t exact = ExactPercentile(values, percent);
    const std::int64_t got = histogram.Percentile(percent).count();
    RC_ASSERT(std::abs(got - exact) * 1000 <= exact);
  }
  RC_ASSERT(histogram.Min().count() == *std::ranges::min_element(values));
  RC_ASSERT(histogram.Max().count() == *std::ranges::max_element(values));
}

RC_GTEST_PROP(LatencyHistogram, MergedHistogramsEqualOneThatSawEverything, ()) {
  const auto first = *rc::gen::container<std::vector<std::int64_t>>(Durations());
  const auto second = *rc::gen::container<std::vector<std::int64_t>>(Durations());
  LatencyHistogram a, b, whole;
  for (const std::int64_t value : first) {
    a.Record(nanoseconds(value));
    whole.Record(nanoseconds(value));
  }
  for (const std::int64_t value : second) {
    b.Record(nanoseconds(value));
    whole.Record(nanoseconds(value));
  }
  a.Merge(b);
  RC_ASSERT(a.count() == whole.count());
  RC_ASSERT(a.Min() == whole.Min());
  RC_ASSERT(a.Max() == whole.Max());
  for (const double percent : {0.0, 25.0, 50.0, 99.0, 99.99, 100.0}) {
    RC_ASSERT(a.Percentile(percent) == whole.Percentile(percent));
  }
}

TEST(LatencyHistogram, TellsThe9999thOfTenThousandFromTheLast) {
  LatencyHistogram histogram;
  histogram.Record(std::chrono::milliseconds(1), 9'999);
  histogram.Record(std::chrono::seconds(1));
  EXPECT_NEAR(histogram.Percentile(99.99).count(), 1e6, 1e3);
  EXPECT_EQ(histogram.Percentile(100), std::chrono::seconds(1));
}

TEST(LatencyHistogram, DoesNotRoundARankUpBecauseOfFloatingPoint) {
  LatencyHistogram histogram;
  for (int i = 1; i <= 1000; ++i) histogram.Record(nanoseconds(i));
  EXPECT_EQ(histogram.Percentile(99.9), nanoseconds(999));
  EXPECT_EQ(histogram.Percentile(50), nanoseconds(500));
}

TEST(LatencyHistogram, IsAllZeroWhenEmptyOrCleared) {
  LatencyHistogram histogram;
  histogram.Record(std::chrono::seconds(3), 7);
  histogram.Clear();
  const LatencySummary summary = Summarise(histogram);
  EXPECT_EQ(summary.count, 0U);
  EXPECT_EQ(summary.p99, nanoseconds(0));
  EXPECT_EQ(summary.max, nanoseconds(0));
  EXPECT_EQ(summary.mean, nanoseconds(0));
}

TEST(LatencyHistogram, ClampsWhatLiesOutsideItsRange) {
  LatencyHistogram histogram;
  histogram.Record(nanoseconds(-5));
  histogram.Record(std::chrono::hours(1000));
  EXPECT_EQ(histogram.Min(), nanoseconds(0));
  EXPECT_GE(histogram.Max(), std::chrono::hours(19));
  EXPECT_EQ(histogram.count(), 2U);
}

}  // namespace
}  // namespace tandem::loadgen
