#include "profiler/op_classifier.h"

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

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

TEST(OpClassifier, TakesAnOperatorForHeavyByItsTime) {
  const OpClassifier classifier;
  const OpVerdict slow = classifier.ByTime(Takes(4ms), OpClass::kLight);
  EXPECT_EQ(slow.op_class, OpClass::kHeavy);
  EXPECT_FALSE(slow.measured);
  EXPECT_EQ(slow.reason, "takes 4.00 ms");
  EXPECT_EQ(classifier.ByTime(Takes(50us), OpClass::kHeavy).op_class, OpClass::kLight);
}

TEST(OpClassifier, StaysWithWhatItWasInBetween) {
  const OpClassifier classifier;
  EXPECT_EQ(classifier.ByTime(Takes(900us), OpClass::kLight).op_class, OpClass::kLight);
  EXPECT_EQ(classifier.ByTime(Takes(900us), OpClass::kHeavy).op_class, OpClass::kHeavy);
}

TEST(OpClassifier, EstimatesFromTheWorkUntilTheTimeWasSeen) {
  const OpClassifier classifier({.flops = 10e9, .bytes = 1e9});
  EXPECT_EQ(classifier.Estimate({.flops = 1e9, .bytes = 1'000}), 100ms);
  EXPECT_EQ(classifier.Estimate({.flops = 1, .bytes = 5'000'000}), 5ms) << "memory takes longer";
  OpTotals op = Takes(10us, 1);
  op.work = {.flops = 1e9, .bytes = 4'000'000};
  const OpVerdict first = classifier.ByTime(op, OpClass::kLight);
  EXPECT_EQ(first.op_class, OpClass::kHeavy);
  EXPECT_EQ(first.reason, "takes about 100.00 ms by its 1 GFLOP and 4 MB");
  op.count = OpClassifier::kRunsOfOp;
  EXPECT_EQ(classifier.ByTime(op, first.op_class).op_class, OpClass::kLight);
}

// As classified from this alone.
OpPairing Pairing(const Interference& seen) {
  return {.seen = seen, .op_class = OpClassifier::Beside(seen, std::nullopt)};
}

TEST(OpClassifier, BelievesWhatRequestsBesideItTakeMoreThanItsTime) {
  const OpVerdict light{.op_class = OpClass::kLight, .reason = "by its time"};
  const OpVerdict heavy{.op_class = OpClass::kHeavy, .reason = "by its time"};
  const std::vector<OpPairing> slows = {Pairing(Slows(1.25))};
  const OpVerdict guilty = OpClassifier::Altogether(slows, light);
  EXPECT_EQ(guilty.op_class, OpClass::kHeavy);
  EXPECT_TRUE(guilty.measured);
  EXPECT_EQ(guilty.reason, "requests of m beside it take 1.25 times as long (200 runs)");
  const std::vector<OpPairing> harmless = {Pairing(Slows(1.00))};
  const OpVerdict innocent = OpClassifier::Altogether(harmless, heavy);
  EXPECT_EQ(innocent.op_class, OpClass::kLight);
  EXPECT_EQ(innocent.reason, "requests of m beside it take no longer (200 runs)");
  const std::vector<OpPairing> unknown = {Pairing(Slows(1.25, 29))};
  for (const auto& pairings : {unknown, std::vector<OpPairing>()}) {
    const OpVerdict by_time = OpClassifier::Altogether(pairings, heavy);
    EXPECT_EQ(by_time.op_class, OpClass::kHeavy);
    EXPECT_FALSE(by_time.measured);
    EXPECT_EQ(by_time.reason, "by its time");
  }
}

TEST(OpClassifier, IsWhatItIsBesideTheModelThatItSlowsMost) {
  const auto named = [](std::string model, double ratio, double error) {
    return Pairing({.model = std::move(model), .ratio = ratio, .error = error, .runs = 200});
  };
  const OpVerdict by_time{.reason = "by its time"};
  const std::vector<OpPairing> pairings = {named("a", 1.01, 0.01), named("b", 1.2, 0.01), named("c", 1.25, 0.03),
                                           named("d", 3, 0.5)};
  EXPECT_EQ(OpClassifier::Altogether(pairings, by_time).reason,
            "requests of b beside it take 1.20 times as long (200 runs)")
      << "of c it is less certain, and of d nothing is";
  EXPECT_EQ(OpClassifier::Altogether(std::span(pairings).first(1), by_time).op_class, OpClass::kLight);
  EXPECT_EQ(OpClassifier::Altogether(std::span(pairings).last(1), by_time).reason, "by its time");
}

TEST(OpClassifier, WaitsUntilChanceDoesNotExplainIt) {
  EXPECT_FALSE(OpClassifier::Beside(Slows(1.5, 29), std::nullopt)) << "too few runs";
  EXPECT_FALSE(OpClassifier::Beside(Slows(1.5, 200, 0.2), std::nullopt)) << "they vary too much";
}

TEST(OpClassifier, GoesBackOnlyWhenRequestsAreClearlyFaster) {
  constexpr auto kHeavy = OpClass::kHeavy;
  constexpr auto kLight = OpClass::kLight;
  EXPECT_EQ(OpClassifier::Beside(Slows(1.2), std::nullopt), kHeavy);
  EXPECT_EQ(OpClassifier::Beside(Slows(1.07), kHeavy), kHeavy);
  EXPECT_EQ(OpClassifier::Beside(Slows(1.07), kLight), kLight);
  EXPECT_EQ(OpClassifier::Beside(Slows(1.07), std::nullopt), kLight);
  EXPECT_EQ(OpClassifier::Beside(Slows(1.09, 200, 0.047), kHeavy), kHeavy);
  EXPECT_EQ(OpClassifier::Beside(Slows(1.2, 20, 0.07), kHeavy), kHeavy) << "what is known may get a little less";
  EXPECT_EQ(OpClassifier::Beside(Slows(1.2, 20, 0.07), std::nullopt), std::nullopt);
  EXPECT_EQ(OpClassifier::Beside(Slows(1.03), kHeavy), kLight);
}

}  // namespace
}  // namespace tandem
