#include "loadgen/arrivals.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace tandem::loadgen {
namespace {

using std::chrono::nanoseconds;

std::vector<double> Gaps(ArrivalProcess& arrivals, int count) {
  std::vector<double> gaps;
  nanoseconds before{0};
  for (int i = 0; i < count; ++i) {
    const nanoseconds at = arrivals.Next().value();
    gaps.push_back(std::chrono::duration<double>(at - before).count());
    before = at;
  }
  return gaps;
}

TEST(PoissonArrivals, PassAKolmogorovSmirnovTestAgainstTheExponentialDistribution) {
  constexpr double kRate = 200;
  constexpr int kCount = 20'000;
  auto arrivals = MakeArrivals(ArrivalSpec::Poisson(kRate), 42);
  ASSERT_TRUE(arrivals);
  std::vector<double> gaps = Gaps(**arrivals, kCount);
  std::ranges::sort(gaps);
  double distance = 0;
  for (int i = 0; i < kCount; ++i) {
    const double expected = 1 - std::exp(-kRate * gaps[static_cast<std::size_t>(i)]);
    distance = std::max({distance, std::abs(expected - static_cast<double>(i) / kCount),
                         std::abs(static_cast<double>(i + 1) / kCount - expected)});
  }
  // The critical value at 1 % significance.
  EXPECT_LT(distance, 1.63 / std::sqrt(kCount));
}

TEST(PoissonArrivals, KeepTheRateThatWasAskedFor) {
  auto arrivals = MakeArrivals(ArrivalSpec::Poisson(1000), 7);
  ASSERT_TRUE(arrivals);
  nanoseconds last{0};
  for (int i = 0; i < 100'000; ++i) last = (*arrivals)->Next().value();
  // 100,000 arrivals are 100 s, give or take a third of a percent (one standard deviation).
  EXPECT_NEAR(std::chrono::duration<double>(last).count(), 100, 1.2);
}

TEST(PoissonArrivals, AreTheSameForTheSameSeedAndDifferForAnother) {
  auto a = MakeArrivals(ArrivalSpec::Poisson(10), 1);
  auto b = MakeArrivals(ArrivalSpec::Poisson(10), 1);
  auto c = MakeArrivals(ArrivalSpec::Poisson(10), 2);
  const auto gaps = Gaps(**a, 100);
  EXPECT_EQ(gaps, Gaps(**b, 100));
  EXPECT_NE(gaps, Gaps(**c, 100));
}

TEST(PoissonArrivals, OfASeedAreTheSameInEveryRelease) {
  auto arrivals = MakeArrivals(ArrivalSpec::Poisson(100), 1);
  ASSERT_TRUE(arrivals);
  EXPECT_EQ((*arrivals)->Next(), nanoseconds(1'437'279));
  EXPECT_EQ((*arrivals)->Next(), nanoseconds(2'903'816));
  EXPECT_EQ((*arrivals)->Next(), nanoseconds(8'904'300));
}

TEST(ConstantArrivals, DoNotDriftOverAMillionRequests) {
  auto arrivals = MakeArrivals(ArrivalSpec::Constant(3), 1);
  ASSERT_TRUE(arrivals);
  EXPECT_EQ((*arrivals)->Next(), nanoseconds(0));
  EXPECT_EQ((*arrivals)->Next(), nanoseconds(333'333'333));
  for (int i = 2; i < 999'999; ++i) (void)(*arrivals)->Next();
  EXPECT_EQ((*arrivals)->Next(), std::chrono::seconds(333'333));
}

TEST(ClosedLoop, SendsAgainOnlyWhenAUserIsFree) {
  auto made = MakeArrivals(ArrivalSpec::Closed(2), 1);
  ASSERT_TRUE(made);
  ArrivalProcess& arrivals = **made;
  EXPECT_FALSE(arrivals.open_loop());
  EXPECT_EQ(arrivals.Next(), nanoseconds(0));
  EXPECT_EQ(arrivals.Next(), nanoseconds(0));
  EXPECT_EQ(arrivals.Next(), std::nullopt);
  arrivals.Completed(nanoseconds(500));
  EXPECT_EQ(arrivals.Next(), nanoseconds(500));
  EXPECT_EQ(arrivals.Next(), std::nullopt);
}

TEST(MakeArrivals, RefusesRatesAndUsersThatMakeNoSense) {
  for (const double rate : {0.0, -1.0, 1e9, std::numeric_limits<double>::infinity(), std::nan("")}) {
    const auto made = MakeArrivals(ArrivalSpec::Poisson(rate), 1);
    ASSERT_FALSE(made) << rate;
    EXPECT_EQ(made.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(made.error().message.find("rate"), std::string::npos);
  }
  EXPECT_FALSE(MakeArrivals(ArrivalSpec::Closed(0), 1));
  EXPECT_FALSE(MakeArrivals(ArrivalSpec::Closed(-3), 1));
}

}  // namespace
}  // namespace tandem::loadgen
