#include "loadgen/arrivals.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <numbers>
#include <numeric>
#include <string>
#include <utility>
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

// How far the gaps are from the exponential distribution of mean 1, in critical values of a Kolmogorov–Smirnov test at
// 1 % significance.
double DistanceFromExponential(std::vector<double> gaps) {
  std::ranges::sort(gaps);
  const auto count = static_cast<double>(gaps.size());
  double distance = 0;
  for (std::size_t i = 0; i < gaps.size(); ++i) {
    const double expected = 1 - std::exp(-gaps[i]);
    distance = std::max({distance, std::abs(expected - static_cast<double>(i) / count),
                         std::abs(static_cast<double>(i + 1) / count - expected)});
  }
  return distance / (1.63 / std::sqrt(count));
}

// The gaps as they are on the scale on which `expected` (the integral of the rate, worked out by hand) is time.
std::vector<double> RescaledGaps(const ArrivalSpec& spec, std::uint64_t seed, int count,
                                 const std::function<double(double)>& expected) {
  auto arrivals = MakeArrivals(spec, seed);
  EXPECT_TRUE(arrivals);
  std::vector<double> gaps;
  double before = 0;
  for (int i = 0; i < count; ++i) {
    const double now = expected(std::chrono::duration<double>((*arrivals)->Next().value()).count());
    gaps.push_back(now - before);
    before = now;
  }
  return gaps;
}

// Arrivals in each of `windows` windows.
std::vector<double> Counts(ArrivalProcess& arrivals, nanoseconds window, int windows) {
  std::vector<double> counts(static_cast<std::size_t>(windows), 0);
  for (auto at = arrivals.Next(); at && *at < window * windows; at = arrivals.Next()) {
    ++counts[static_cast<std::size_t>(*at / window)];
  }
  return counts;
}

double Mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Variance over mean: 1 for a Poisson process.
double Dispersion(const std::vector<double>& counts) {
  const double mean = Mean(counts);
  double squares = 0;
  for (const double count : counts) squares += (count - mean) * (count - mean);
  return squares / static_cast<double>(counts.size() - 1) / mean;
}

std::shared_ptr<const TraceStream> StreamOf(std::initializer_list<nanoseconds> times) {
  TraceStream stream;
  for (const nanoseconds time : times) stream.rows.push_back({.time = time});
  return std::make_shared<const TraceStream>(std::move(stream));
}

TEST(PoissonArrivals, PassAKolmogorovSmirnovTestAgainstTheExponentialDistribution) {
  const auto gaps = RescaledGaps(ArrivalSpec::Poisson(200), 42, 20'000, [](double t) { return 200 * t; });
  EXPECT_LT(DistanceFromExponential(gaps), 1);
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

TEST(ConstantArrivals, AreExact) {
  auto arrivals = MakeArrivals(ArrivalSpec::Constant(250), 1);
  ASSERT_TRUE(arrivals);
  for (int i = 0; i < 10'000; ++i) ASSERT_EQ((*arrivals)->Next(), i * std::chrono::milliseconds(4));
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

TEST(RampArrivals, PassAKolmogorovSmirnovTestUpwardsAndDownwards) {
  // 10,000 are expected on the slope, as many again where the rate stays.
  const auto slope = [](double from, double to) {
    return [=](double t) {
      const double on_slope = std::min(t, 20.0);
      return from * on_slope + (to - from) / 40 * on_slope * on_slope + to * std::max(0.0, t - 20);
    };
  };
  for (const auto& [from, to] : {std::pair(0.0, 1000.0), std::pair(900.0, 100.0)}) {
    const auto gaps =
        RescaledGaps(ArrivalSpec::Ramp({.from = from, .to = to, .over_s = 20}), 3, 20'000, slope(from, to));
    EXPECT_LT(DistanceFromExponential(gaps), 1) << from;
  }
}

TEST(RampArrivals, ReachTheEndOfTheRampAtTheEndOfTheRun) {
  const ArrivalSpec spec = ArrivalSpec::Ramp({.from = 0, .to = 1000, .over_s = {}});
  auto arrivals = MakeArrivals(spec, 5, std::chrono::seconds(40));
  ASSERT_TRUE(arrivals);
  const auto counts = Counts(**arrivals, std::chrono::seconds(10), 6);
  // The quarters of the slope, then the rate that stays; five standard deviations.
  const std::vector<double> expected{1250, 3750, 6250, 8750, 10'000, 10'000};
  for (std::size_t i = 0; i < counts.size(); ++i) EXPECT_NEAR(counts[i], expected[i], 5 * std::sqrt(expected[i]));

  const auto without_run = MakeArrivals(spec, 5);
  ASSERT_FALSE(without_run);
  EXPECT_NE(without_run.error().message.find("over_s"), std::string::npos);
}

TEST(RampArrivals, EndWhenTheRateHasGoneDownToNothing) {
  auto arrivals = MakeArrivals(ArrivalSpec::Ramp({.from = 1000, .to = 0, .over_s = 2}), 9);
  ASSERT_TRUE(arrivals);
  int count = 0;
  nanoseconds last{0};
  for (auto at = (*arrivals)->Next(); at; at = (*arrivals)->Next(), ++count) last = *at;
  EXPECT_NEAR(count, 1000, 5 * std::sqrt(1000));
  EXPECT_LE(last, std::chrono::seconds(2));
  EXPECT_EQ((*arrivals)->Next(), std::nullopt);
}

TEST(StepsArrivals, PassAKolmogorovSmirnovTestAndHoldTheLastStep) {
  const auto spec = ArrivalSpec::Steps({{.rate = 100, .seconds = 10}, {.rate = 800, .seconds = 5}, {400, 1}});
  const auto gaps = RescaledGaps(spec, 8, 20'000, [](double t) {
    return 100 * std::min(t, 10.0) + 800 * std::clamp(t - 10, 0.0, 5.0) + 400 * std::max(0.0, t - 15);
  });
  EXPECT_LT(DistanceFromExponential(gaps), 1);
}

TEST(StepsArrivals, SendNothingInAPause) {
  auto arrivals = MakeArrivals(ArrivalSpec::Steps({{100, 5}, {0, 20}, {100, 5}}), 2);
  ASSERT_TRUE(arrivals);
  const auto counts = Counts(**arrivals, std::chrono::seconds(5), 6);
  EXPECT_NEAR(counts[0], 500, 112);
  EXPECT_EQ(counts[1] + counts[2] + counts[3] + counts[4], 0);
  EXPECT_NEAR(counts[5], 500, 112);
}

TEST(StepsArrivals, EndAfterALastStepOfNothing) {
  auto arrivals = MakeArrivals(ArrivalSpec::Steps({{100, 5}, {0, 1}}), 2);
  ASSERT_TRUE(arrivals);
  nanoseconds last{0};
  for (auto at = (*arrivals)->Next(); at; at = (*arrivals)->Next()) last = *at;
  EXPECT_GT(last, std::chrono::seconds(4));
  EXPECT_LE(last, std::chrono::seconds(5));
}

TEST(DiurnalArrivals, PassAKolmogorovSmirnovTest) {
  for (const double swing : {0.0, 0.8, 1.0}) {
    const auto gaps =
        RescaledGaps(ArrivalSpec::Diurnal({.mean = 500, .swing = swing, .period_s = 7}), 11, 20'000, [&](double t) {
          const double turn = 2 * std::numbers::pi / 7;
          return 500 * (t + swing / turn * (1 - std::cos(turn * t)));
        });
    EXPECT_LT(DistanceFromExponential(gaps), 1) << swing;
  }
}

TEST(DiurnalArrivals, AreDenseInTheFirstHalfOfAPeriodAndRareInTheSecond) {
  auto arrivals = MakeArrivals(ArrivalSpec::Diurnal({.mean = 100, .swing = 1, .period_s = 60}), 4);
  ASSERT_TRUE(arrivals);
  const auto counts = Counts(**arrivals, std::chrono::seconds(30), 40);
  double first = 0, second = 0;
  for (std::size_t i = 0; i < counts.size(); i += 2) first += counts[i], second += counts[i + 1];
  // 3000 · (1 ± 2/π) in each half.
  EXPECT_NEAR(first / 20, 4909.9, 5 * std::sqrt(4909.9 / 20));
  EXPECT_NEAR(second / 20, 1090.1, 5 * std::sqrt(1090.1 / 20));
}

TEST(BurstyArrivals, KeepTheMeanRateAndAreAsBurstyAsTheirParametersSay) {
  auto arrivals = MakeArrivals(ArrivalSpec::Bursty({.on = 200, .off = 5, .on_s = 1, .off_s = 4}), 1);
  ASSERT_TRUE(arrivals);
  const auto counts = Counts(**arrivals, std::chrono::seconds(100), 1000);
  // (200 · 1 + 5 · 4) / 5 per second. A window of 100 s has a standard deviation of some 970.
  EXPECT_NEAR(Mean(counts), 4400, 150);
  // In long windows the dispersion of a two-state Markov-modulated process tends to
  // 1 + 2·a·b·(on − off)² / ((a + b)²·(on·b + off·a)) = 222, with a = 1/on_s and b = 1/off_s.
  EXPECT_NEAR(Dispersion(counts), 222, 30);

  auto poisson = MakeArrivals(ArrivalSpec::Poisson(44), 1);
  EXPECT_NEAR(Dispersion(Counts(**poisson, std::chrono::seconds(100), 1000)), 1, 0.15);
}

TEST(BurstyArrivals, AreSilentInALullOfRateZero) {
  auto arrivals = MakeArrivals(ArrivalSpec::Bursty({.on = 1000, .off = 0, .on_s = 0.1, .off_s = 0.9}), 6);
  ASSERT_TRUE(arrivals);
  const auto gaps = Gaps(**arrivals, 100'000);
  // Of 100,000 gaps at 1000 per second none is as long as 20 ms: such a gap holds a lull. One comes after 100 requests.
  const auto lulls = std::ranges::count_if(gaps, [](double gap) { return gap > 0.02; });
  EXPECT_NEAR(static_cast<double>(lulls), 980, 150);
  EXPECT_NEAR(std::accumulate(gaps.begin(), gaps.end(), 0.0), 1000, 200);
}

TEST(BurstyArrivals, OfManySeedsHaveTheMeanRateFromTheStart) {
  double count = 0;
  for (std::uint64_t seed = 1; seed <= 4000; ++seed) {
    auto arrivals = MakeArrivals(ArrivalSpec::Bursty({.on = 100, .off = 0, .on_s = 1, .off_s = 3}), seed);
    count += Counts(**arrivals, std::chrono::milliseconds(100), 1).front();
  }
  // 25 per second, in a tenth of a second; a quarter of the seeds start in a burst.
  EXPECT_NEAR(count / 4000, 2.5, 0.4);
}

TEST(TraceArrivals, AreTheTimesGivenAndThenEnd) {
  auto arrivals = MakeArrivals(ArrivalSpec::Replay(StreamOf({nanoseconds(0), nanoseconds(7), nanoseconds(7)})), 1);
  ASSERT_TRUE(arrivals);
  EXPECT_TRUE((*arrivals)->open_loop());
  EXPECT_EQ((*arrivals)->Next(), nanoseconds(0));
  EXPECT_EQ((*arrivals)->Next(), nanoseconds(7));
  EXPECT_EQ((*arrivals)->Next(), nanoseconds(7));
  EXPECT_EQ((*arrivals)->Next(), std::nullopt);
  EXPECT_EQ((*arrivals)->Next(), std::nullopt);
}

TEST(TraceArrivals, RefuseTimesThatFallAndATraceThatWasNotRead) {
  EXPECT_FALSE(MakeArrivals(ArrivalSpec::Replay(StreamOf({nanoseconds(7), nanoseconds(6)})), 1));
  EXPECT_FALSE(MakeArrivals(ArrivalSpec::Replay(StreamOf({nanoseconds(-1)})), 1));
  const auto unread = MakeArrivals({.kind = ArrivalKind::kTrace, .trace_file = "day.csv"}, 1);
  ASSERT_FALSE(unread);
  EXPECT_NE(unread.error().message.find("day.csv"), std::string::npos);
}

std::vector<ArrivalSpec> RandomKinds() {
  return {ArrivalSpec::Poisson(1e5),
          ArrivalSpec::Bursty({.on = 1e6, .off = 1, .on_s = 0.001, .off_s = 0.01}),
          ArrivalSpec::Ramp({.from = 1e6, .to = 0, .over_s = 0.2}),
          ArrivalSpec::Steps({{1e6, 0.01}, {0, 1}, {5, 0.001}, {1e7, 1}}),
          ArrivalSpec::Diurnal({.mean = 1e5, .swing = 1, .period_s = 0.001}),
          ArrivalSpec::Diurnal({.mean = 1e7, .swing = 0.5, .period_s = 1e7})};
}

TEST(MakeArrivals, NeverGoesBackwards) {
  std::vector<ArrivalSpec> specs = RandomKinds();
  specs.push_back(ArrivalSpec::Constant(1e7));
  for (const ArrivalSpec& spec : specs) {
    auto arrivals = MakeArrivals(spec, 12);
    ASSERT_TRUE(arrivals);
    nanoseconds before{0};
    for (int i = 0; i < 90'000; ++i) {
      const nanoseconds at = (*arrivals)->Next().value();
      ASSERT_LE(before, at) << ArrivalKindName(spec.kind) << ' ' << i;
      before = at;
    }
  }
}

TEST(MakeArrivals, GivesTheSameTimesForTheSameSeedAndOthersForAnother) {
  for (const ArrivalSpec& spec : RandomKinds()) {
    const auto gaps = [&](std::uint64_t seed) { return Gaps(*MakeArrivals(spec, seed).value(), 1000); };
    EXPECT_EQ(gaps(1), gaps(1)) << ArrivalKindName(spec.kind);
    EXPECT_NE(gaps(1), gaps(2)) << ArrivalKindName(spec.kind);
  }
}

TEST(MakeArrivals, EndsInsteadOfOverflowingWhenTheRateIsNextToNothing) {
  for (const ArrivalSpec& spec : {ArrivalSpec::Poisson(1e-300), ArrivalSpec::Constant(1e-300),
                                  ArrivalSpec::Steps({{1e-300, 1}}), ArrivalSpec::Diurnal({1e-300, 0.5, 1})}) {
    auto arrivals = MakeArrivals(spec, 1);
    ASSERT_TRUE(arrivals);
    if (spec.kind == ArrivalKind::kConstant) {
      EXPECT_EQ((*arrivals)->Next(), nanoseconds(0));
    }
    EXPECT_EQ((*arrivals)->Next(), std::nullopt) << ArrivalKindName(spec.kind);
  }
}

TEST(MakeArrivals, NamesTheFieldThatMakesNoSense) {
  const double nan = std::nan("");
  const std::vector<std::pair<ArrivalSpec, std::string>> refused{
      {ArrivalSpec::Bursty({.on = 0, .off = 1, .on_s = 1, .off_s = 1}), "'on' of bursty"},
      {ArrivalSpec::Bursty({.on = 1, .off = -1, .on_s = 1, .off_s = 1}), "'off' of bursty"},
      {ArrivalSpec::Bursty({.on = 1, .off = 1, .on_s = 0, .off_s = 1}), "'on_s' of bursty"},
      {ArrivalSpec::Bursty({.on = 1, .off = 1, .on_s = 1, .off_s = nan}), "'off_s' of bursty"},
      {ArrivalSpec::Bursty({.on = 1e-3, .off = 0, .on_s = 1e-3, .off_s = 1}), "0.001 requests"},
      {ArrivalSpec::Ramp({.from = -1, .to = 1, .over_s = {}}), "'from' of ramp"},
      {ArrivalSpec::Ramp({.from = 1, .to = 1e8, .over_s = {}}), "'to' of ramp"},
      {ArrivalSpec::Ramp({.from = 0, .to = 0, .over_s = {}}), "both"},
      {ArrivalSpec::Ramp({.from = 1, .to = 1, .over_s = 1e8}), "'over_s' of ramp"},
      {ArrivalSpec::Steps({}), "between 1 and 10000 steps"},
      {ArrivalSpec::Steps(std::vector<RateStep>(10'001, {1, 1})), "got 10001"},
      {ArrivalSpec::Steps({{1, 1}, {nan, 1}}), "'rate of step 2'"},
      {ArrivalSpec::Steps({{1, 0}}), "'seconds of step 1'"},
      {ArrivalSpec::Steps({{0, 1}, {0, 1}}), "all be 0"},
      {ArrivalSpec::Diurnal({.mean = 0, .swing = 0.5, .period_s = 1}), "'mean' of diurnal"},
      {ArrivalSpec::Diurnal({.mean = 1, .swing = 1.5, .period_s = 1}), "'swing' of diurnal"},
      {ArrivalSpec::Diurnal({.mean = 1, .swing = 0.5, .period_s = 0}), "'period_s' of diurnal"},
  };
  for (const auto& [spec, expected] : refused) {
    const auto made = MakeArrivals(spec, 1, std::chrono::seconds(1));
    ASSERT_FALSE(made) << expected;
    EXPECT_EQ(made.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(made.error().message.find(expected), std::string::npos) << made.error().message;
  }
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
