#include "loadgen/binomial_tail.h"

#include <cmath>

#include <gtest/gtest.h>

namespace tandem::loadgen {
namespace {

TEST(BinomialTail, IsExactForAHandfulOfCoins) {
  EXPECT_NEAR(std::exp(LogProbabilityOf(4, 2, 0.5)), 6.0 / 16, 1e-14);
  EXPECT_NEAR(std::exp(LogProbabilityOfAtMost(4, 1, 0.5)), 5.0 / 16, 1e-14);
  EXPECT_NEAR(std::exp(LogProbabilityOfAtLeast(4, 1, 0.5)), 15.0 / 16, 1e-14);
  EXPECT_NEAR(std::exp(LogProbabilityOfAtMost(4, 3, 0.5)), 15.0 / 16, 1e-14);
  EXPECT_EQ(LogProbabilityOfAtMost(4, 4, 0.5), 0);
  EXPECT_EQ(LogProbabilityOfAtLeast(4, 0, 0.5), 0);
  EXPECT_EQ(LogProbabilityOfAtMost(0, 0, 0.5), 0);
}

TEST(BinomialTail, TheProbabilitiesOfAllCountsAddUpToOne) {
  for (const std::uint64_t count : {1, 7, 40, 1000}) {
    for (const double share : {0.0001, 0.01, 0.3, 0.5, 0.97}) {
      double sum = 0;
      for (std::uint64_t misses = 0; misses <= count; ++misses) sum += std::exp(LogProbabilityOf(count, misses, share));
      EXPECT_NEAR(sum, 1, 1e-12) << count << " " << share;
    }
  }
}

TEST(BinomialTail, BothTailsTogetherMakeOne) {
  for (const std::uint64_t count : {10ULL, 12'571ULL, 1'000'000'000ULL}) {
    const auto mean = static_cast<std::uint64_t>(static_cast<double>(count) * 0.01);
    for (const std::uint64_t misses : {mean, mean + 1, mean + mean / 100}) {
      const double low = std::exp(LogProbabilityOfAtMost(count, misses, 0.01));
      const double high = std::exp(LogProbabilityOfAtLeast(count, misses + 1, 0.01));
      EXPECT_NEAR(low + high, 1, 1e-12) << count << " " << misses;
    }
  }
}

TEST(BinomialTail, AgreesWithTheExactSumAtABillionRequests) {
  // By summing with 60 decimal digits.
  EXPECT_NEAR(LogProbabilityOfAtMost(1'000'000'000, 9'990'000, 0.01), -7.208672406628891, 1e-9);
  EXPECT_NEAR(LogProbabilityOfAtMost(1'000'000'000, 9'000'000, 0.01), -52266.86687007011, 1e-7);
}

TEST(BinomialTail, HoldsProbabilitiesThatNoDoubleCan) {
  EXPECT_DOUBLE_EQ(LogProbabilityOfAtMost(1'000'000, 0, 0.5), 1e6 * std::log(0.5));
  EXPECT_DOUBLE_EQ(LogProbabilityOfAtLeast(1'000'000, 1'000'000, 0.0001), 1e6 * std::log(0.0001));
}

}  // namespace
}  // namespace tandem::loadgen
