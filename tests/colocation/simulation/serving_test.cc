#include "colocation/simulation/serving.h"

#include <gtest/gtest.h>

#include "colocation/policies/idle.h"
#include "colocation/simulation/simulation.h"

namespace tandem::simulation {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

Model Constant(std::string name, double rate, nanoseconds time, std::optional<nanoseconds> slo = std::nullopt) {
  return {.name = std::move(name), .rate = rate, .poisson = false, .slo = slo, .steps = {{.time = time, .width = 1}}};
}

Model Poisson(std::string name, double rate, nanoseconds time, std::optional<nanoseconds> slo = std::nullopt) {
  Model model = Constant(std::move(name), rate, time, slo);
  model.poisson = true;
  return model;
}

SimulationResult Serve(std::vector<Model> models, nanoseconds duration = 100s, const char* admission = "deadline") {
  Scenario scenario{.models = std::move(models), .warmup = 1s, .duration = duration, .seed = 5, .admission = admission};
  return Simulate(scenario, IdlePolicy());
}

TEST(SimulatedServing, ARequestThatFindsTheDeviceFreeTakesItsOwnTime) {
  const auto model = Serve({Constant("a", 10, 5ms)}).models[0];
  EXPECT_EQ(model.offered, 1000);
  EXPECT_EQ(model.p50, 5ms);
  EXPECT_EQ(model.max, 5ms);
}

TEST(SimulatedServing, TheWayToTheServerCounts) {
  Model model = Constant("a", 10, 5ms, 6ms);
  model.overhead = 2ms;
  const auto result = Serve({model}).models[0];
  EXPECT_EQ(result.p50, 7ms);
  EXPECT_EQ(result.in_time, 0);
  EXPECT_EQ(result.due, result.offered);
}

// Pollaczek and Khinchine: the mean wait is rate × E[time²] / (2 (1 − load)).
TEST(SimulatedServing, WaitsAsLongAsQueueingTheorySays) {
  const auto fixed = Serve({Poisson("a", 50, 10ms)}, 5'000s).models[0];
  EXPECT_NEAR(static_cast<double>(fixed.mean.count()), 15e6, 0.2e6);

  Model model = Poisson("a", 50, 10ms);
  model.spread = 0.5;
  const double mean = 10e6 * std::exp(0.125);
  const double square = 1e14 * std::exp(0.5);
  const double expected = mean + 50e-9 * square / (2 * (1 - 50e-9 * mean));
  EXPECT_NEAR(static_cast<double>(Serve({model}, 5'000s).models[0].mean.count()), expected, 0.02 * expected);
}

TEST(SimulatedServing, TheEarliestDeadlineGoesFirst) {
  const auto result = Serve({Poisson("patient", 40, 10ms, 10s), Poisson("urgent", 40, 10ms, 100ms)}, 500s);
  EXPECT_LT(result.models[1].p99, 100ms);
  EXPECT_GT(result.models[0].p99, result.models[1].p99);
  EXPECT_EQ(result.models[0].in_time, result.models[0].due) << "patience is long enough";
}

TEST(SimulatedServing, BatchesCarryWhatSingleRunsCannot) {
  Model model = Poisson("a", 200, 10ms, 200ms);
  EXPECT_LT(Serve({model}).models[0].answered, 110 * 100) << "100 a second are what single runs can do";
  model.max_batch = 8;
  model.growth = 0.2;
  const auto batched = Serve({model}).models[0];
  EXPECT_GE(static_cast<double>(batched.in_time), 0.99 * static_cast<double>(batched.due));
}

// Were two taken to be twice as long as one until they were run, they never would be.
TEST(SimulatedServing, BatchesThatWereNeverRunAreTriedBesideADeadline) {
  Model model = Poisson("a", 300, 10ms, 19ms);
  model.max_batch = 2;
  model.growth = 0.1;
  EXPECT_GT(Serve({model}).models[0].in_time, 110 * 100) << "100 a second are what single runs can do";
}

TEST(SimulatedServing, UnderOverloadWhatIsLetInIsInTime) {
  const auto refused = Serve({Poisson("a", 300, 10ms, 50ms)}).models[0];
  EXPECT_GT(refused.rejected, 150 * 100);
  EXPECT_GE(refused.in_time, 90 * 100) << "of 100 a second";
  EXPECT_EQ(refused.offered, refused.answered + refused.rejected + refused.unfinished);
}

TEST(SimulatedServing, WithoutADeadlineNothingIsRefusedByPrediction) {
  const auto model = Serve({Poisson("a", 120, 10ms)}, 10s).models[0];
  EXPECT_EQ(model.rejected, 0);
  EXPECT_GT(model.unfinished, 0);
  EXPECT_EQ(model.due, 0);
}

TEST(SimulatedServing, AFullQueueRefuses) {
  Scenario scenario{.models = {Poisson("a", 300, 10ms)}, .duration = 10s, .max_queued = 5};
  const auto model = Simulate(scenario, IdlePolicy()).models[0];
  EXPECT_GT(model.rejected, 1500);
  EXPECT_LE(model.max, 70ms) << "six before it, and its own";
}

TEST(SimulatedServing, WorkersRunBesideOneAnother) {
  Scenario scenario{.machine = {.width = 2, .workers = 2}, .models = {Poisson("a", 150, 10ms)}, .duration = 100s};
  const auto model = Simulate(scenario, IdlePolicy()).models[0];
  EXPECT_GT(model.answered, 14'000) << "one worker could do 10,000";
}

// On two cores 10 ms, on one thread 17: at most 100 a second one after the other, and 117 side by side.
Scenario WithWidths(double rate, int workers) {
  Model model = Poisson("a", rate, 10ms);
  model.steps[0].width = 2;
  model.speedup = 1.7;
  return {.machine = {.width = 2, .workers = workers}, .models = {model}, .duration = 200s};
}

TEST(SimulatedServing, UnderLoadRunsHaveOneThreadEach) {
  const auto answered = [](int workers) { return Simulate(WithWidths(140, workers), IdlePolicy()).models[0].answered; };
  EXPECT_NEAR(static_cast<double>(answered(1)), 20'000, 100);
  EXPECT_NEAR(static_cast<double>(answered(0)), 23'500, 200);
}

TEST(SimulatedServing, ARequestThatComesAloneHasAllThreads) {
  const auto model = Simulate(WithWidths(1, 0), IdlePolicy()).models[0];
  EXPECT_NEAR(static_cast<double>(model.p50.count()), 10e6, 1e4);
  EXPECT_LE(Simulate(WithWidths(50, 0), IdlePolicy()).models[0].p99,
            Simulate(WithWidths(50, 1), IdlePolicy()).models[0].p99);
}

}  // namespace
}  // namespace tandem::simulation
