#include "bench/training_server.h"

#include <gtest/gtest.h>

namespace tandem::bench {
namespace {

using namespace std::chrono_literals;

TEST(TrainingSpan, IsWhatWasCountedBetweenTwoMoments) {
  TrainingMarks before{.at = MonotonicTime(10s), .steps = {5, 100}, .cpu = 1, .periods = 50, .throttled = 10};
  before.acknowledgements = {{0.001, 7}, {0.002, 7}};
  TrainingMarks after{.at = MonotonicTime(12s), .steps = {11, 101}, .cpu = 1.5, .periods = 70, .throttled = 15};
  after.acknowledgements = {{0.001, 7}, {0.002, 9}};
  after.missed_by_training = 4;
  const TrainingSpan span = Between(before, after);
  EXPECT_EQ(span.rates, (std::vector<double>{3, 0.5}));
  EXPECT_EQ(span.cores, 0.25);
  EXPECT_EQ(span.throttled, 0.25);
  EXPECT_EQ(span.acknowledged, 0.002);
  EXPECT_EQ(span.missed_by_training, 4);
  before.missed_by_training = 3;
  EXPECT_EQ(Between(before, after).missed_by_training, 1);
}

TEST(TrainingSpan, WithoutAQuotaNothingIsThrottledAndWithoutAGateNothingSeen) {
  const TrainingMarks before{.at = MonotonicTime(10s), .steps = {5}};
  const TrainingMarks after{.at = MonotonicTime(11s), .steps = {5}};
  const TrainingSpan span = Between(before, after);
  EXPECT_EQ(span.throttled, 0);
  EXPECT_EQ(span.acknowledged, std::nullopt);
  EXPECT_EQ(span.missed_by_training, std::nullopt);
}

}  // namespace
}  // namespace tandem::bench
