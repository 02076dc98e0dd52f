#include "loadgen/rate_search.h"

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem::loadgen {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr VerdictKind kPass = VerdictKind::kPass;
constexpr VerdictKind kFail = VerdictKind::kFail;
constexpr VerdictKind kInconclusive = VerdictKind::kInconclusive;

using Server = std::function<VerdictKind(double rate)>;

struct Log {
  RateSearchResult result;
  std::vector<double> tried;
  std::vector<std::string> lines;
};

Log Search(const RateSearchOptions& options, const Server& server) {
  RateSearch search = RateSearch::Create(options).value();
  Log log;
  while (const std::optional<double> rate = search.Next()) {
    log.tried.push_back(*rate);
    log.lines.push_back(search.Describe());
    EXPECT_TRUE(search.Observe(*rate, server(*rate)));
  }
  log.lines.push_back(search.Describe());
  log.result = search.result();
  EXPECT_EQ(log.result.trials, static_cast<int>(log.tried.size()));
  EXPECT_LE(log.result.trials, options.max_trials);
  return log;
}

Server Bears(double capacity) {
  return [capacity](double rate) { return rate <= capacity ? kPass : kFail; };
}

TEST(RateSearch, FindsTheCapacityOfASteadyServerWithinTheTolerance) {
  for (const double capacity : {1.0, 1.3, 7.0, 99.9, 100.0, 100.1, 333.0, 4'321.0, 98'765.0, 5e6}) {
    for (const double start : {1.0, 100.0, 50'000.0}) {
      const Log log = Search({.start = start}, Bears(capacity));
      EXPECT_EQ(log.result.outcome, RateOutcome::kConfirmed) << capacity;
      EXPECT_LE(*log.result.rate, capacity);
      EXPECT_GE(*log.result.rate, capacity / 1.03);
      EXPECT_GT(*log.result.upper, capacity);
      EXPECT_EQ(log.result.confirmed, 2);
    }
  }
}

// Near its capacity the server passes by chance: 1 % above it once in eight trials, 1 % below seven times in eight.
TEST(RateSearch, FindsTheCapacityOfANoisyServerWithinFivePercent) {
  int searches = 0;
  int near = 0;
  for (const double capacity : {3.0, 42.0, 123.0, 800.0, 1'777.0, 31'000.0}) {
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      std::mt19937_64 random(seed);
      const Log log = Search({}, [&](double rate) {
        const double chance = 1 / (1 + std::exp((rate / capacity - 1) / 0.005));
        return static_cast<double>(random() >> 11) * 0x1p-53 < chance ? kPass : kFail;
      });
      EXPECT_EQ(log.result.outcome, RateOutcome::kConfirmed);
      ++searches;
      near += std::abs(*log.result.rate / capacity - 1) <= 0.05 ? 1 : 0;
    }
  }
  EXPECT_EQ(near, searches);
}

TEST(RateSearch, DoublesThenHalvesTheGapThenConfirms) {
  const Log log = Search({.tolerance = 0.2}, Bears(300));
  EXPECT_THAT(log.tried, ElementsAre(100, 200, 400, std::sqrt(200.0 * 400), testing::DoubleNear(336.36, 0.01),
                                     std::sqrt(200.0 * 400), std::sqrt(200.0 * 400)));
  EXPECT_THAT(
      log.lines,
      ElementsAre("trial 1: 100 requests per second, the start", "trial 2: 200 requests per second, above 100 (passes)",
                  "trial 3: 400 requests per second, above 200 (passes)",
                  "trial 4: 282.8 requests per second, between 200 (passes) and 400 (fails)",
                  "trial 5: 336.4 requests per second, between 282.8 (passes) and 400 (fails)",
                  "trial 6: 282.8 requests per second, confirmation 1 of 2",
                  "trial 7: 282.8 requests per second, confirmation 2 of 2",
                  "282.8 requests per second after 7 trials: confirmed by 2 more; next above is 336.4 (fails)"));
}

TEST(RateSearch, HalvesWhenTheStartFails) {
  const Log log = Search({.tolerance = 1}, Bears(30));
  EXPECT_THAT(log.tried, ElementsAre(100, 50, 25, 25, 25));
  EXPECT_EQ(log.lines[1], "trial 2: 50 requests per second, below 100 (fails)");
}

TEST(RateSearch, GoesOnBelowARateThatIsNotConfirmed) {
  int at_200 = 0;
  const Log log = Search({.tolerance = 0.2, .confirmations = 2}, [&](double rate) {
    if (rate == 200) return ++at_200 < 3 ? kPass : kFail;  // The first pass was luck, and so was one confirmation.
    return rate <= 150 ? kPass : kFail;
  });
  EXPECT_EQ(at_200, 3);
  EXPECT_EQ(log.result.outcome, RateOutcome::kConfirmed);
  EXPECT_LE(*log.result.rate, 150);
  EXPECT_GE(*log.result.rate, 150 / 1.2);
  EXPECT_LE(*log.result.upper, 200);
}

TEST(RateSearch, SaysThatTheHighestRateAskedForPasses) {
  const Log log = Search({.start = 100, .highest = 300}, Bears(1e9));
  EXPECT_EQ(log.result.outcome, RateOutcome::kPassesAtHighest);
  EXPECT_THAT(log.tried, ElementsAre(100, 200, 300, 300, 300));
  EXPECT_EQ(log.result.upper, std::nullopt);
  EXPECT_EQ(log.lines.back(),
            "300 requests per second after 5 trials: passes at the highest rate asked for, confirmed by 2 more");
}

TEST(RateSearch, ComesDownFromAHighestRateThatIsNotConfirmed) {
  int at_highest = 0;
  const Log log = Search({.start = 100, .highest = 200}, [&](double rate) {
    if (rate == 200) return ++at_highest == 1 ? kPass : kFail;
    return rate <= 130 ? kPass : kFail;
  });
  EXPECT_EQ(log.result.outcome, RateOutcome::kConfirmed);
  EXPECT_NEAR(*log.result.rate, 130, 130 * 0.03);
}

TEST(RateSearch, SaysThatEvenTheLowestRateFails) {
  const Log log = Search({.start = 100, .lowest = 30}, Bears(10));
  EXPECT_EQ(log.result.outcome, RateOutcome::kFailsAtLowest);
  EXPECT_THAT(log.tried, ElementsAre(100, 50, 30));
  EXPECT_EQ(log.result.rate, std::nullopt);
  EXPECT_EQ(log.lines.back(), "no rate after 3 trials: fails even at the lowest rate, 30 requests per second");
}

TEST(RateSearch, ALowestRateThatIsNotConfirmedFails) {
  int trials = 0;
  const Log log =
      Search({.start = 30, .lowest = 30, .highest = 30}, [&](double) { return ++trials == 1 ? kPass : kFail; });
  EXPECT_EQ(log.result.outcome, RateOutcome::kFailsAtLowest);
  EXPECT_EQ(log.result.rate, std::nullopt);
  EXPECT_EQ(log.result.trials, 2);
}

TEST(RateSearch, CountsInconclusiveAsNotPassedAndSaysSo) {
  const Log log = Search({.tolerance = 0.2}, [](double rate) {
    return rate <= 300 ? kPass : rate < 350 ? kInconclusive : kFail;
  });
  EXPECT_EQ(log.result.outcome, RateOutcome::kConfirmed);
  EXPECT_LE(*log.result.rate, 300);
  EXPECT_TRUE(log.result.upper_inconclusive);
  EXPECT_EQ(log.result.inconclusive, 1);
  EXPECT_THAT(log.lines.back(), HasSubstr("336.4 (inconclusive)"));

  const Log never = Search({.lowest = 60}, [](double) { return kInconclusive; });
  EXPECT_EQ(never.result.outcome, RateOutcome::kFailsAtLowest);
  EXPECT_EQ(never.result.inconclusive, 2);
  EXPECT_THAT(never.lines.back(), HasSubstr("inconclusive even at the lowest rate"));
}

TEST(RateSearch, NeverMakesMoreTrialsThanAllowedAndSaysWhatItKnowsThen) {
  for (int max_trials = 1; max_trials <= 20; ++max_trials) {
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      std::mt19937_64 random(seed);
      (void)Search({.max_trials = max_trials}, [&](double) { return random() % 2 == 0 ? kPass : kFail; });
    }
  }
  const Log unconfirmed = Search({.max_trials = 4}, Bears(300));
  EXPECT_EQ(unconfirmed.result.outcome, RateOutcome::kUnconfirmed);
  EXPECT_NEAR(*unconfirmed.result.rate, 282.8, 0.1);
  EXPECT_EQ(unconfirmed.lines.back(),
            "282.8 requests per second after 4 trials, which are all: passes, but is not confirmed; next above is 400 "
            "(fails)");
  const Log not_found = Search({.max_trials = 2}, Bears(3));
  EXPECT_EQ(not_found.result.outcome, RateOutcome::kNotFound);
  EXPECT_EQ(not_found.lines.back(), "no rate after 2 trials, which are all: lowest tried is 50 (fails)");
}

TEST(RateSearch, TheWidestSearchEndsWithinTheDefaultNumberOfTrials) {
  EXPECT_EQ(Search({.start = 1}, Bears(9e6)).result.outcome, RateOutcome::kConfirmed);
  EXPECT_EQ(Search({.start = 1e7, .lowest = 0.01}, Bears(0.011)).result.outcome, RateOutcome::kConfirmed);
}

TEST(RateSearch, TakesOnlyTheVerdictThatItAskedFor) {
  RateSearch search = RateSearch::Create({.start = 30, .lowest = 30, .confirmations = 0}).value();
  EXPECT_FALSE(search.Observe(31, kPass));
  EXPECT_EQ(search.Next(), 30);
  EXPECT_TRUE(search.Observe(30, kFail));
  EXPECT_EQ(search.Next(), std::nullopt);
  EXPECT_FALSE(search.Observe(30, kPass));
  EXPECT_EQ(search.result().trials, 1);
}

TEST(RateSearch, RefusesOptionsThatMakeNoSense) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(RateSearch::Create({.start = 0}));
  EXPECT_FALSE(RateSearch::Create({.start = nan}));
  EXPECT_FALSE(RateSearch::Create({.start = 100, .lowest = 0}));
  EXPECT_FALSE(RateSearch::Create({.start = 100, .lowest = 200}));
  EXPECT_FALSE(RateSearch::Create({.start = 100, .highest = 50}));
  EXPECT_FALSE(RateSearch::Create({.start = 100, .highest = 1e9}));
  EXPECT_FALSE(RateSearch::Create({.tolerance = 0}));
  EXPECT_FALSE(RateSearch::Create({.tolerance = nan}));
  EXPECT_FALSE(RateSearch::Create({.confirmations = -1}));
  EXPECT_FALSE(RateSearch::Create({.max_trials = 0}));
  EXPECT_THAT(RateSearch::Create({.start = 100, .lowest = 200}).error().message, HasSubstr("200"));
}

}  // namespace
}  // namespace tandem::loadgen
