#include "bench/training_server.h"

#include <gtest/gtest.h>

namespace tandem::bench {
namespace {

using namespace std::chrono_literals;

OpCounts Ran(double matmul, double relu) {
  return {{"MatMul a", {.ops = 1, .runs = matmul, .typical = 30}}, {"Relu b", {.ops = 1, .runs = relu, .typical = 10}}};
}

TEST(StepsBetween, AStepThatHasBegunCountsForWhatIsDoneOfIt) {
  EXPECT_EQ(StepsBetween(Ran(5, 5), Ran(7, 7)), 2);
  EXPECT_EQ(StepsBetween(Ran(5, 5), Ran(6, 5)), 0.75);
  EXPECT_EQ(StepsBetween(Ran(6, 5), Ran(6, 6)), 0.25);
  EXPECT_EQ(StepsBetween({}, Ran(3, 3)), 3);
  EXPECT_EQ(StepsBetween({}, {}), 0);
}

TEST(StepsBetween, OperatorsOfOneNameAreOneStepTogether) {
  const OpCounts before = {{"Add ", {.ops = 2, .runs = 2, .typical = 8}}};
  const OpCounts after = {{"Add ", {.ops = 2, .runs = 6, .typical = 8}}};
  EXPECT_EQ(StepsBetween(before, after), 2);
}

TEST(TrainingSpan, IsWhatWasCountedBetweenTwoMoments) {
  TrainingMarks before{
      .at = MonotonicTime(10s), .ops = {Ran(5, 5), Ran(100, 100)}, .cpu = 1, .periods = 50, .throttled = 10};
  before.acknowledgements = {{0.001, 7}, {0.002, 7}};
  TrainingMarks after{
      .at = MonotonicTime(12s), .ops = {Ran(11, 11), Ran(101, 101)}, .cpu = 1.5, .periods = 70, .throttled = 15};
  after.acknowledgements = {{0.001, 7}, {0.002, 9}};
  after.missed_by_training = 4;
  const TrainingSpan span = Between(before, after);
  EXPECT_EQ(span.seconds, 2);
  EXPECT_EQ(span.rates, (std::vector<double>{3, 0.5}));
  EXPECT_EQ(span.cores, 0.25);
  EXPECT_EQ(span.periods, 20);
  EXPECT_EQ(span.throttled, 5);
  EXPECT_EQ(span.acknowledged, 0.002);
  EXPECT_EQ(span.missed_by_training, 4);
  before.missed_by_training = 3;
  EXPECT_EQ(Between(before, after).missed_by_training, 1);
}

TEST(TrainingSpan, WithoutAQuotaNothingIsThrottledAndWithoutAGateNothingSeen) {
  const TrainingMarks before{.at = MonotonicTime(10s), .ops = {Ran(5, 5)}};
  const TrainingMarks after{.at = MonotonicTime(11s), .ops = {Ran(5, 5)}};
  const TrainingSpan span = Between(before, after);
  EXPECT_EQ(span.rates, std::vector<double>{0});
  EXPECT_EQ(span.periods, 0);
  EXPECT_EQ(span.throttled, 0);
  EXPECT_EQ(span.acknowledged, std::nullopt);
  EXPECT_EQ(span.missed_by_training, std::nullopt);
}

}  // namespace
}  // namespace tandem::bench
