#include "loadgen/comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem::loadgen {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

// Normally distributed, by Box and Muller: the same in every library.
class Noise {
 public:
  explicit Noise(std::uint64_t seed) : random_(seed) {}
  double Next() { return std::sqrt(-2 * std::log(1 - Uniform())) * std::cos(2 * std::numbers::pi * Uniform()); }
  double Uniform() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

 private:
  std::mt19937_64 random_;
};

// Repetitions on a machine that drifts, and is half as fast in one repetition of four; both sides feel it alike. Each
// side's own noise of `noise` hits a whole run, that of single samples comes on top.
std::vector<PairedSamples> Simulate(double ratio, double noise, int repetitions, std::uint64_t seed) {
  Noise random(seed);
  std::vector<PairedSamples> result;
  double drift = 1;
  for (int i = 0; i < repetitions; ++i) {
    drift *= std::exp(0.1 * random.Next());
    const double machine = drift * (random.Uniform() < 0.25 ? 2 : 1);
    const double a = 10 * machine * std::exp(noise * random.Next());
    const double b = 10 * machine * ratio * std::exp(noise * random.Next());
    PairedSamples samples;
    for (int j = 0; j < 15; ++j) {
      samples.a.push_back(a * std::exp(0.02 * random.Next()));
      samples.b.push_back(b * std::exp(0.02 * random.Next()));
    }
    result.push_back(samples);
  }
  return result;
}

std::vector<PairedSamples> Ratios(const std::vector<double>& ratios) {
  std::vector<PairedSamples> result;
  for (const double ratio : ratios) result.push_back({.a = {1}, .b = {ratio}});
  return result;
}

TEST(RunOrder, RunsEverySideOnceInEachRepetition) {
  const auto order = RunOrder(3, 50, 7);
  ASSERT_EQ(order.size(), 50U);
  std::set<std::vector<std::size_t>> seen;
  for (const auto& repetition : order) {
    EXPECT_THAT(repetition, UnorderedElementsAre(0, 1, 2));
    seen.insert(repetition);
  }
  EXPECT_EQ(seen.size(), 6U);  // Every order came up.
}

TEST(RunOrder, IsTheSameForTheSameSeedAndLetsEachSideBeFirstAboutAsOften) {
  EXPECT_EQ(RunOrder(2, 100, 3), RunOrder(2, 100, 3));
  EXPECT_NE(RunOrder(2, 100, 3), RunOrder(2, 100, 4));
  const auto order = RunOrder(2, 10'000, 1);
  const auto first = std::ranges::count_if(order, [](const auto& repetition) { return repetition[0] == 0; });
  EXPECT_NEAR(static_cast<double>(first), 5000, 200);  // Four standard deviations.
  EXPECT_TRUE(RunOrder(2, 0, 1).empty());
}

TEST(Compare, TakesTheRatioOfMediansOfEachRepetition) {
  const std::vector<PairedSamples> repetitions = {{.a = {1, 100, 2}, .b = {3, 1, 900}},  // Medians 2 and 3.
                                                  {.a = {10, 30}, .b = {40}},            // 20 and 40.
                                                  {.a = {5}, .b = {5, 5, 5}}};
  const auto comparison = Compare(repetitions);
  ASSERT_TRUE(comparison);
  EXPECT_THAT(comparison->ratios, ElementsAre(1.5, 2, 1));
  EXPECT_DOUBLE_EQ(comparison->ratio, 1.5);
}

TEST(Compare, IsTheInverseWhenTheSidesChangePlaces) {
  std::vector<PairedSamples> repetitions = Simulate(1.3, 0.1, 6, 3);
  const Comparison forth = Compare(repetitions).value();
  for (PairedSamples& samples : repetitions) std::swap(samples.a, samples.b);
  const Comparison back = Compare(repetitions).value();
  EXPECT_NEAR(forth.ratio * back.ratio, 1, 1e-12);
  EXPECT_NEAR(forth.interval->low * back.interval->high, 1, 0.01);
}

TEST(Compare, TheIntervalHoldsTheTrueRatioAboutAsOftenAsPromisedOnADriftingMachine) {
  for (const double truth : {1.0, 1.2}) {
    for (const int repetitions : {6, 8, 15}) {
      int held = 0;
      for (std::uint64_t seed = 0; seed < 200; ++seed) {
        const auto comparison = Compare(Simulate(truth, 0.05, repetitions, seed), {.resamples = 2'000, .seed = seed});
        held += comparison->interval->low <= truth && truth <= comparison->interval->high ? 1 : 0;
      }
      EXPECT_GE(held, 180) << truth << " " << repetitions;
    }
  }
}

TEST(Compare, ShowsADifferenceOfAFifthInEightRepetitions) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Comparison comparison = Compare(Simulate(1.2, 0.05, 8, seed)).value();
    EXPECT_EQ(comparison.difference, Difference::kShown) << seed;
    EXPECT_GT(comparison.interval->low, 1) << seed;
  }
}

TEST(Compare, ASlowMachineInOneRepetitionFakesNoWin) {
  // Alike but for one percent of noise, while the machine is ten times as slow in two repetitions of five.
  std::vector<PairedSamples> repetitions;
  for (const auto& [machine, noise] : {std::pair{1.0, 1.01}, {10.0, 0.99}, {10.0, 1.0}, {1.0, 0.995}, {1.0, 1.005}}) {
    repetitions.push_back({.a = {machine}, .b = {machine * noise}});
  }
  const Comparison comparison = Compare(repetitions).value();
  EXPECT_EQ(comparison.difference, Difference::kNotShown);
  EXPECT_NEAR(comparison.ratio, 1, 0.011);
  EXPECT_LT(comparison.interval->high, 1.011);
}

TEST(Compare, IsTheSameForTheSameSeed) {
  const std::vector<PairedSamples> repetitions = Simulate(1.1, 0.1, 9, 1);
  const Comparison once = Compare(repetitions, {.seed = 5}).value();
  const Comparison again = Compare(repetitions, {.seed = 5}).value();
  EXPECT_EQ(once.interval->low, again.interval->low);
  EXPECT_EQ(once.interval->high, again.interval->high);
}

TEST(Compare, AHigherConfidenceWidensTheInterval) {
  const std::vector<PairedSamples> repetitions = Simulate(1.1, 0.1, 12, 1);
  const RatioInterval narrow = Compare(repetitions, {.confidence = 0.5})->interval.value();
  const RatioInterval wide = Compare(repetitions, {.confidence = 0.99})->interval.value();
  EXPECT_LT(wide.low, narrow.low);
  EXPECT_GT(wide.high, narrow.high);
}

TEST(Compare, GivesNoIntervalForFewerThanThreeRepetitions) {
  const Comparison two = Compare(Ratios({2, 2})).value();
  EXPECT_EQ(two.difference, Difference::kTooFewRepetitions);
  EXPECT_EQ(two.interval, std::nullopt);
  EXPECT_DOUBLE_EQ(two.ratio, 2);
  EXPECT_TRUE(Compare(Ratios({2, 2, 2}))->interval);
}

TEST(Compare, RefusesWhatCannotBeCompared) {
  EXPECT_FALSE(Compare({}));
  for (const double sample : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    const auto comparison = Compare(Ratios({1, 1, sample}));
    ASSERT_FALSE(comparison) << sample;
    EXPECT_EQ(comparison.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(comparison.error().message, HasSubstr("side B in repetition 3"));
  }
  const std::vector<PairedSamples> empty_side = {{.a = {}, .b = {1}}};
  EXPECT_FALSE(Compare(empty_side));
  EXPECT_FALSE(Compare(Ratios({1, 1, 1}), {.confidence = 1}));
  EXPECT_FALSE(Compare(Ratios({1, 1, 1}), {.confidence = std::nan("")}));
  EXPECT_FALSE(Compare(Ratios({1, 1, 1}), {.resamples = 0}));
}

TEST(ComparisonText, SaysWhatIsShownAndWhatIsNot) {
  EXPECT_EQ(ComparisonText(Compare(Ratios({1.05, 1.05, 1.05, 1.12, 1.12, 1.12, 1.12, 1.2, 1.2, 1.2})).value()),
            "B is 1.12 x A (1.05 - 1.20)");
  EXPECT_EQ(ComparisonText(Compare(Ratios({0.95, 0.95, 0.95, 1, 1, 1, 1, 1.05, 1.05, 1.05})).value(), "old", "new"),
            "no difference shown: new is 1.00 x old (0.95 - 1.05)");
  EXPECT_EQ(ComparisonText(Compare(Ratios({1.5})).value()),
            "B is 1.50 x A; no interval, since 1 repetition is too few to tell it from chance, and 3 are needed");
  EXPECT_EQ(ComparisonText(Compare(Ratios({1.5, 1.5})).value()),
            "B is 1.50 x A; no interval, since 2 repetitions are too few to tell it from chance, and 3 are needed");
}

TEST(ComparisonText, DoesNotRoundADifferenceAway) {
  EXPECT_EQ(ComparisonText(Compare(Ratios(std::vector(8, 1.001))).value()), "B is 1.001 x A (1.001 - 1.001)");
  EXPECT_EQ(ComparisonText(Compare(Ratios(std::vector(8, 0.00123))).value()), "B is 0.0012 x A (0.0012 - 0.0012)");
}

TEST(ComparisonText, OwnsUpToWhatFewRepetitionsCanShow) {
  EXPECT_EQ(ComparisonText(Compare(Ratios({1.1, 1.2, 1.3})).value()),
            "B is 1.20 x A (1.10 - 1.30); 3 repetitions allow at most 75 % confidence, not 95 %");
  EXPECT_GE(AttainableConfidence(6), 0.95);
  EXPECT_LT(AttainableConfidence(5), 0.95);
}

}  // namespace
}  // namespace tandem::loadgen
