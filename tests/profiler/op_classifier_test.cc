#include "profiler/op_classifier.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

using namespace std::chrono_literals;

OpTotals Takes(std::chrono::nanoseconds typical, std::uint64_t count = 100) {
  return {.op = {.kind = "Conv", .name = "c"}, .work = {}, .count = count, .typical = typical};
}

Interference Slows(double ratio, double runs = 200, double error = 0.01) {
  return {.model = "m", .ratio = ratio, .error = error, .runs = runs};
}

const OpVerdict kLight{.op_class = OpClass::kLight, .measured = false, .reason = ""};
const OpVerdict kHeavy{.op_class = OpClass::kHeavy, .measured = false, .reason = ""};

TEST(OpClassifier, TakesAnOperatorForHeavyByItsTime) {
  const OpClassifier classifier;
  const OpVerdict slow = classifier.Classify(Takes(4ms), std::nullopt, kLight);
  EXPECT_EQ(slow.op_class, OpClass::kHeavy);
  EXPECT_FALSE(slow.measured);
  EXPECT_EQ(slow.reason, "takes 4.00 ms");
  EXPECT_EQ(classifier.Classify(Takes(50us), std::nullopt, kHeavy).op_class, OpClass::kLight);
}

TEST(OpClassifier, StaysWithWhatItWasInBetween) {
  const OpClassifier classifier;
  EXPECT_EQ(classifier.Classify(Takes(900us), std::nullopt, kLight).op_class, OpClass::kLight);
  EXPECT_EQ(classifier.Classify(Takes(900us), std::nullopt, kHeavy).op_class, OpClass::kHeavy);
}

TEST(OpClassifier, EstimatesFromTheWorkUntilTheTimeWasSeen) {
  const OpClassifier classifier({.flops = 10e9, .bytes = 1e9});
  EXPECT_EQ(classifier.Estimate({.flops = 1e9, .bytes = 1'000}), 100ms);
  EXPECT_EQ(classifier.Estimate({.flops = 1, .bytes = 5'000'000}), 5ms) << "memory takes longer";
  OpTotals op = Takes(10us, 1);
  op.work = {.flops = 1e9, .bytes = 4'000'000};
  const OpVerdict first = classifier.Classify(op, std::nullopt, {});
  EXPECT_EQ(first.op_class, OpClass::kHeavy);
  EXPECT_EQ(first.reason, "takes about 100.00 ms by its 1 GFLOP and 4 MB");
  op.count = OpClassifier::kRunsOfOp;
  EXPECT_EQ(classifier.Classify(op, std::nullopt, first).op_class, OpClass::kLight);
}

TEST(OpClassifier, BelievesWhatRequestsBesideItTakeMoreThanItsTime) {
  const OpClassifier classifier;
  const OpVerdict heavy = classifier.Classify(Takes(10us), Slows(1.25), kLight);
  EXPECT_EQ(heavy.op_class, OpClass::kHeavy);
  EXPECT_TRUE(heavy.measured);
  EXPECT_EQ(heavy.reason, "requests of m beside it take 1.25 times as long (200 runs)");
  const OpVerdict light = classifier.Classify(Takes(40ms), Slows(1.00), kHeavy);
  EXPECT_EQ(light.op_class, OpClass::kLight);
  EXPECT_EQ(light.reason, "requests of m beside it take no longer (200 runs)");
}

TEST(OpClassifier, WaitsUntilChanceDoesNotExplainIt) {
  const OpClassifier classifier;
  EXPECT_FALSE(classifier.Classify(Takes(10us), Slows(1.5, 29), kLight).measured) << "too few runs";
  EXPECT_FALSE(classifier.Classify(Takes(10us), Slows(1.5, 200, 0.2), kLight).measured) << "they vary too much";
}

TEST(OpClassifier, GoesBackOnlyWhenRequestsAreClearlyFaster) {
  const OpClassifier classifier;
  const OpVerdict heavy = classifier.Classify(Takes(10us), Slows(1.2), kLight);
  EXPECT_EQ(classifier.Classify(Takes(10us), Slows(1.07), heavy).op_class, OpClass::kHeavy);
  EXPECT_EQ(classifier.Classify(Takes(10us), Slows(1.07), kLight).op_class, OpClass::kLight);
  EXPECT_EQ(classifier.Classify(Takes(10us), Slows(1.09, 200, 0.047), heavy).op_class, OpClass::kHeavy);
  EXPECT_EQ(classifier.Classify(Takes(10us), Slows(1.2, 20, 0.07), heavy).op_class, OpClass::kHeavy)
      << "what is known may get a little less";
  EXPECT_EQ(classifier.Classify(Takes(10us), Slows(1.03), heavy).op_class, OpClass::kLight);
  EXPECT_FALSE(classifier.Classify(Takes(10us), std::nullopt, heavy).measured) << "what was seen is forgotten";
}

}  // namespace
}  // namespace tandem
