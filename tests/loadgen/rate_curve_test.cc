#include "loadgen/rate_curve.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace tandem::loadgen {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double Draw(int least, int most) {
  return *rc::gen::inRange(least, most) / 100.0;
}

void InverseMeetsTheCurve(const RateCurve& curve, double expected) {
  const double time = curve.TimeOf(expected);
  RC_ASSERT(std::isfinite(time));
  RC_ASSERT(std::abs(curve.Expected(time) - expected) <= 1e-10 * (1 + expected));
}

RC_GTEST_PROP(RateCurve, IsInvertedExactly, ()) {
  const double expected = Draw(0, 10'000'000);
  const auto ramp = MakeRampCurve({.from = Draw(0, 100'000), .to = Draw(1, 100'000), .over_s = {}}, Draw(1, 10'000));
  InverseMeetsTheCurve(*ramp, expected);
  std::vector<RateStep> steps;
  for (int i = *rc::gen::inRange(0, 20); i > 0; --i) steps.push_back({Draw(0, 10'000), Draw(1, 1'000)});
  steps.push_back({Draw(1, 10'000), Draw(1, 1'000)});
  InverseMeetsTheCurve(*MakeStepsCurve(steps), expected);
  InverseMeetsTheCurve(*MakeDiurnalCurve({Draw(1, 100'000), Draw(0, 101), Draw(1, 10'000)}), expected);
}

TEST(RateCurve, OfARampIsASlopeAndThenStays) {
  const auto curve = MakeRampCurve({.from = 10, .to = 30, .over_s = {}}, 10);
  EXPECT_DOUBLE_EQ(curve->Expected(0), 0);
  EXPECT_DOUBLE_EQ(curve->Expected(5), 75);
  EXPECT_DOUBLE_EQ(curve->Expected(10), 200);
  EXPECT_DOUBLE_EQ(curve->Expected(12), 260);
  EXPECT_DOUBLE_EQ(curve->TimeOf(75), 5);
  EXPECT_DOUBLE_EQ(curve->TimeOf(260), 12);
}

TEST(RateCurve, OfARampToNothingEnds) {
  const auto curve = MakeRampCurve({.from = 10, .to = 0, .over_s = {}}, 4);
  EXPECT_DOUBLE_EQ(curve->TimeOf(20), 4);
  EXPECT_EQ(curve->TimeOf(20.001), kInfinity);
  EXPECT_DOUBLE_EQ(curve->Expected(1e6), 20);
}

TEST(RateCurve, OfStepsGivesTheFirstOfManyTimesInAPause) {
  const std::vector<RateStep> steps{{10, 2}, {0, 5}, {4, 1}};
  const auto curve = MakeStepsCurve(steps);
  EXPECT_DOUBLE_EQ(curve->TimeOf(20), 2);
  EXPECT_DOUBLE_EQ(curve->TimeOf(22), 7.5);
  EXPECT_DOUBLE_EQ(curve->TimeOf(64), 18);
  EXPECT_DOUBLE_EQ(curve->Expected(6), 20);
}

TEST(RateCurve, OfADayExpectsTheMeanOverEveryWholePeriod) {
  const auto curve = MakeDiurnalCurve({.mean = 3, .swing = 0.7, .period_s = 24});
  for (int day = 0; day < 5; ++day) {
    EXPECT_NEAR(curve->Expected(24.0 * day), 72.0 * day, 1e-9);
    EXPECT_NEAR(curve->TimeOf(72.0 * day), 24.0 * day, 1e-9);
  }
  // The first half of the period has the peak.
  EXPECT_NEAR(curve->Expected(12), 36 + 3 * 0.7 * 24 / std::acos(-1.0), 1e-9);
}

}  // namespace
}  // namespace tandem::loadgen
