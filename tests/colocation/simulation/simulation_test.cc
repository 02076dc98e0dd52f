#include "colocation/simulation/simulation.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "api/base/duration.h"

namespace tandem::simulation {
namespace {

using namespace std::chrono_literals;

// Two cores; requests that take 10 ms of 1.5 cores, 30 a second; training whose operators take 5 ms.
Scenario TwoCores() {
  return {.machine = {.width = 2},
          .models = {{.name = "served",
                      .rate = 30,
                      .slo = 1s,
                      .steps = {{.time = 10ms, .width = 1.5}},
                      .speedup = 1.5,
                      .spread = 0.2}},
          .trainers = {{.name = "trained",
                        .steps = {{.time = 5ms, .width = 2, .heavy = true}, {.time = 5ms, .width = 1}},
                        .speedup = 1.8}},
          .warmup = 1s,
          .duration = 200s,
          .seed = 3};
}

SimulationResult Under(const char* policy, const Scenario& scenario) {
  return Simulate(scenario, **MakeColocationPolicy(policy));
}

SimulationResult Alone(Scenario scenario) {
  scenario.trainers.clear();
  return Under("idle", scenario);
}

double TrainingAlone(Scenario scenario) {
  scenario.models.clear();
  return Under("idle", scenario).trainers[0].iterations_per_second;
}

double P99(const SimulationResult& result) {
  return Ms(result.models[0].p99);
}

// But for the rounding to whole nanoseconds of what lies in between.
void ExpectSame(std::chrono::nanoseconds a, std::chrono::nanoseconds b) {
  EXPECT_NEAR(static_cast<double>(a.count()), static_cast<double>(b.count()), 1000);
}

double Held(const SimulationResult& result, HoldReason reason) {
  const auto place = std::ranges::find(kHoldReasons, reason) - kHoldReasons.begin();
  return Seconds(result.trainers[0].held[static_cast<std::size_t>(place)]) / Seconds(result.time);
}

TEST(Simulation, SameSeedSameResultAndOtherSeedAnother) {
  Scenario scenario = TwoCores();
  const auto first = Under("none", scenario);
  const auto second = Under("none", scenario);
  EXPECT_EQ(first.models[0].p99, second.models[0].p99);
  EXPECT_EQ(first.events, second.events);
  EXPECT_EQ(first.trainers[0].iterations_per_second, second.trainers[0].iterations_per_second);
  scenario.seed = 4;
  EXPECT_NE(Under("none", scenario).models[0].mean, first.models[0].mean);
}

TEST(Simulation, TrainingAloneIterates) {
  EXPECT_NEAR(TrainingAlone(TwoCores()), 100, 0.01);
}

TEST(Simulation, TheIdleClassCostsRequestsNothing) {
  const Scenario scenario = TwoCores();
  const auto alone = Alone(scenario);
  const auto beside = Under("idle", scenario);
  ExpectSame(beside.models[0].max, alone.models[0].max);
  ExpectSame(beside.models[0].p99, alone.models[0].p99);
  EXPECT_NEAR(alone.used_by_requests / 400, 0.225 * std::exp(0.02), 0.005);
}

// Two threads of an operator wait for the one whose core a request has; single ones take what is left.
TEST(Simulation, TrainingInLockstepCannotUsePartsOfTheMachine) {
  Scenario scenario = TwoCores();
  scenario.trainers[0].steps = {{.time = 10ms, .width = 2}};
  const double busy = 0.3 * std::exp(0.02);
  EXPECT_NEAR(Under("idle", scenario).trainers[0].iterations_per_second, 100 * (1 - busy), 2);
  scenario.trainers[0].lockstep = false;
  EXPECT_NEAR(Under("idle", scenario).trainers[0].iterations_per_second, 100 * (1 - 0.75 * busy), 2);
}

TEST(Simulation, EqualsSlowRequestsDown) {
  const Scenario scenario = TwoCores();
  EXPECT_GT(P99(Under("none", scenario)), 1.5 * P99(Alone(scenario)));
  EXPECT_LT(P99(Under("nice", scenario)), 1.1 * P99(Alone(scenario)));
}

TEST(Simulation, PausingCostsTrainingTheTimeOfRequests) {
  const Scenario scenario = TwoCores();
  const auto alone = Alone(scenario);
  const auto paused = Under("pause", scenario);
  ExpectSame(paused.models[0].max, alone.models[0].max);
  EXPECT_NEAR(Held(paused, HoldReason::kRequests), 0.3, 0.02) << "30 requests of 10 ms a second";
  EXPECT_NEAR(paused.trainers[0].iterations_per_second, 70, 2);
}

TEST(Simulation, SlicesOfTimeLieBetweenPausingAndEquals) {
  const Scenario scenario = TwoCores();
  const auto sliced = Under("time_slice", scenario);
  EXPECT_GT(P99(sliced), P99(Under("pause", scenario)));
  EXPECT_LT(P99(sliced), P99(Under("none", scenario)));
  EXPECT_GT(Held(sliced, HoldReason::kRequests), 0.1);
}

TEST(Simulation, AGateHoldsHeavyOperatorsWhileRequestsAreUnderWay) {
  Scenario scenario = TwoCores();
  const auto gated = Under("op_gate", scenario);
  EXPECT_GT(Held(gated, HoldReason::kRequests), 0.1);
  EXPECT_LT(P99(gated), P99(Under("none", scenario)));
  // An operator that has begun is in the way for as long as it lasts.
  scenario.trainers[0].steps = {{.time = 500ms, .width = 2, .heavy = true}};
  EXPECT_GT(P99(Under("op_gate", scenario)), 1.8 * P99(Alone(scenario)));
  scenario.trainers[0].steps = {{.time = 5ms, .width = 2, .heavy = false}};
  EXPECT_EQ(Held(Under("op_gate", scenario), HoldReason::kRequests), 0);
}

TEST(Simulation, PartsHaveOneThreadEach) {
  const auto parted = Under("partition", TwoCores());
  EXPECT_NEAR(Ms(parted.models[0].p50), 15, 4) << "10 ms by two threads";
  EXPECT_NEAR(parted.trainers[0].iterations_per_second, 1 / (0.005 * 1.8 + 0.005), 0.1);
}

TEST(Simulation, TheQuotaIsWhatTheIdleClassDoesNotKnow) {
  Scenario scenario = TwoCores();
  scenario.machine.limit = CpuLimit{.quota = 100ms, .period = 100ms};
  scenario.models[0].rate = 20;
  const auto alone = Alone(scenario);
  const auto idle = Under("idle", scenario);
  const auto tandem = Under("tandem", scenario);
  EXPECT_GT(P99(idle), 2 * P99(alone));
  EXPECT_GT(idle.throttled_periods, idle.periods / 2);
  EXPECT_LT(P99(tandem), 1.1 * P99(alone));
  EXPECT_LE(tandem.throttled_periods, alone.throttled_periods + tandem.periods / 10);
  EXPECT_GT(Held(tandem, HoldReason::kQuota), 0.2);
  const double left = TrainingAlone(scenario) * (1 - alone.used_by_requests / Seconds(alone.time));
  EXPECT_GT(tandem.trainers[0].iterations_per_second, 0.6 * left);
}

TEST(Simulation, WhatTheFrontEndUsesCounts) {
  Scenario scenario = TwoCores();
  const double without = Alone(scenario).used_by_requests;
  scenario.models[0].front = 1ms;
  const auto with = Alone(scenario);
  EXPECT_NEAR(with.used_by_requests - without, 200 * 0.03, 0.3) << "30 ms a second";
}

// As a client that waits for all answers would have it: those that come last had the longest queue before them.
TEST(Simulation, WhatIsStillOutMayBeWaitedFor) {
  Scenario scenario = TwoCores();
  scenario.models[0].rate = 120;
  scenario.models[0].slo = {};
  scenario.duration = 10s;
  const auto cut = Under("none", scenario);
  ASSERT_GT(cut.models[0].unfinished, 100) << "more comes than can be answered";
  scenario.drain = 1h;
  const auto drained = Under("none", scenario);
  EXPECT_EQ(drained.models[0].unfinished, 0);
  EXPECT_EQ(drained.models[0].answered, drained.models[0].offered);
  EXPECT_EQ(drained.models[0].offered, cut.models[0].offered) << "nothing comes any more";
  EXPECT_GT(P99(drained), 1.2 * P99(cut));
  EXPECT_EQ(drained.trainers[0].iterations_per_second, cut.trainers[0].iterations_per_second) << "it does not count";
  EXPECT_EQ(drained.used_by_requests, cut.used_by_requests);
  scenario.drain = 100ms;
  EXPECT_GT(Under("none", scenario).models[0].unfinished, 0) << "nor for ever";
}

TEST(Simulation, AQuotaThatCannotBindIsNone) {
  Scenario scenario = TwoCores();
  const auto without = Under("tandem", scenario);
  scenario.machine.limit = CpuLimit{.quota = 200ms, .period = 100ms};
  const auto with = Under("tandem", scenario);
  EXPECT_EQ(with.models[0].p99, without.models[0].p99);
  EXPECT_EQ(with.periods, 0);
}

TEST(Simulation, SeveralTrainersShareWhatIsLeft) {
  Scenario scenario = TwoCores();
  scenario.trainers.push_back(scenario.trainers[0]);
  scenario.trainers[1].name = "second";
  const auto result = Under("idle", scenario);
  EXPECT_NEAR(result.trainers[0].iterations_per_second, result.trainers[1].iterations_per_second, 0.5);
  ExpectSame(result.models[0].p99, Alone(scenario).models[0].p99);
}

// With a core each no operator has a thread that waits for one.
TEST(Simulation, TandemSharesTheCoresOutToSeveralTrainers) {
  Scenario scenario = TwoCores();
  scenario.trainers[0] = {.name = "first", .steps = {{.time = 10ms, .width = 2}}, .speedup = 1.25};
  scenario.trainers.push_back(scenario.trainers[0]);
  const auto shared = Under("tandem", scenario);
  const auto crowded = Under("idle", scenario);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_GT(shared.trainers[i].iterations_per_second, 1.5 * crowded.trainers[i].iterations_per_second) << i;
  }
  ExpectSame(shared.models[0].p99, Alone(scenario).models[0].p99);
  scenario.models.clear();
  for (const TrainerResult& trainer : Under("tandem", scenario).trainers) {
    EXPECT_NEAR(trainer.iterations_per_second, 80, 0.1) << "10 ms by two threads are 12.5 by one";
  }
  for (const TrainerResult& trainer : Under("idle", scenario).trainers) {
    EXPECT_NEAR(trainer.iterations_per_second, 50, 0.1);
  }
}

// Four cores' worth of eight: two threads for each of two trainers last for a period, three do not.
TEST(Simulation, TandemDividesThePaceOfAQuotaAmongSeveralTrainers) {
  Scenario scenario = TwoCores();
  scenario.machine.width = 8;
  scenario.machine.limit = CpuLimit{.quota = 400ms, .period = 100ms};
  scenario.models[0].rate = 5;
  scenario.trainers[0] = {.name = "first", .steps = {{.time = 10ms, .width = 8}}, .speedup = 4};
  scenario.trainers.push_back(scenario.trainers[0]);
  scenario.warmup = 5s;
  const auto alone = Alone(scenario);
  const auto paced = Under("tandem", scenario);
  EXPECT_LE(paced.throttled_periods, paced.periods / 10);
  EXPECT_LT(P99(paced), 1.1 * P99(alone));
  EXPECT_LT(Held(paced, HoldReason::kQuota), 0.1) << "as fast as it lasts, and not faster for a part of the time";
  EXPECT_GT(paced.used_by_training, 0.85 * (4 * Seconds(paced.time) - alone.used_by_requests));
}

TEST(Simulation, JoiningOperatorsChangesNothing) {
  Scenario coarse = TwoCores();
  coarse.trainers[0].steps = {{.time = 10ms, .width = 2}};
  Scenario fine = coarse;
  fine.trainers[0].steps.assign(20, {.time = 500us, .width = 2});
  const auto joined = Under("idle", fine);
  EXPECT_EQ(joined.events, Under("idle", coarse).events) << "or a million requests take too long";
  // Under a policy with a gate they are apart.
  EXPECT_NEAR(Under("op_gate", fine).trainers[0].iterations_per_second,
              Under("op_gate", coarse).trainers[0].iterations_per_second, 1);
}

}  // namespace
}  // namespace tandem::simulation
