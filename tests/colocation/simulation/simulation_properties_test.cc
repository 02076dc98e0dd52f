#include <cstdint>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "api/base/duration.h"
#include "colocation/simulation/simulation.h"

namespace tandem::simulation {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

nanoseconds Between(nanoseconds low, nanoseconds high) {
  return nanoseconds(*rc::gen::inRange(low.count(), high.count()));
}

double Part(double most) {
  return most * *rc::gen::inRange(1, 101) / 100;
}

std::vector<Step> Steps(int count, double width) {
  std::vector<Step> steps;
  for (int i = 0; i < count; ++i) {
    const double wide = Part(width);
    steps.push_back({.time = Between(100us, 10ms), .width = wide, .heavy = wide > width / 2});
  }
  return steps;
}

Scenario AnyScenario(DeviceKind kind) {
  Scenario scenario;
  const bool cpu = kind == DeviceKind::kCpu;
  scenario.machine.kind = kind;
  scenario.machine.width = cpu ? *rc::gen::inRange(1, 9) : 80;
  scenario.machine.workers = *rc::gen::inRange(1, 4);
  if (cpu && *rc::gen::arbitrary<bool>()) {
    const nanoseconds period = Between(10ms, 200ms);
    const auto quota = static_cast<std::int64_t>(Part(scenario.machine.width) * static_cast<double>(period.count()));
    scenario.machine.limit = CpuLimit{.quota = nanoseconds(quota), .period = period};
  }
  const int models = *rc::gen::inRange(1, 4);
  for (int i = 0; i < models; ++i) {
    Model model{.name = std::to_string(i), .rate = 1 + Part(100), .poisson = *rc::gen::arbitrary<bool>()};
    if (*rc::gen::arbitrary<bool>()) model.slo = Between(1ms, 500ms);
    model.max_batch = *rc::gen::inRange(1, 9);
    model.growth = Part(1);
    model.spread = Part(0.5);
    model.steps = Steps(cpu ? 1 : *rc::gen::inRange(1, 6), scenario.machine.width);
    scenario.models.push_back(model);
  }
  const int trainers = *rc::gen::inRange(0, 3);
  for (int i = 0; i < trainers; ++i) {
    scenario.trainers.push_back(
        {.name = std::to_string(i), .steps = Steps(*rc::gen::inRange(1, 6), scenario.machine.width)});
  }
  scenario.warmup = Between(0ms, 1s);
  scenario.duration = Between(1s, 10s);
  scenario.seed = *rc::gen::arbitrary<std::uint64_t>();
  scenario.admission = *rc::gen::arbitrary<bool>() ? "deadline" : "queue";
  return scenario;
}

void CheckSums(const Scenario& scenario, const SimulationResult& result) {
  for (const ModelResult& model : result.models) {
    RC_ASSERT(model.offered == model.answered + model.rejected + model.unfinished);
    RC_ASSERT(model.in_time <= model.answered);
    RC_ASSERT(model.due <= model.offered);
    RC_ASSERT(model.p50 <= model.p99);
    RC_ASSERT(model.p99 <= model.max);
  }
  const double most = scenario.machine.width * Seconds(result.time);
  RC_ASSERT(result.used_by_requests + result.used_by_training <= most + 1e-6);
  if (scenario.machine.limit) {
    RC_ASSERT(result.most_used_in_a_period <= Seconds(scenario.machine.limit->quota) + 1e-7);
  }
  for (const TrainerResult& trainer : result.trainers) {
    nanoseconds held{0};
    for (const auto time : trainer.held) held += time;
    RC_ASSERT(held <= result.time);
    RC_ASSERT(trainer.iterations_per_second >= 0);
  }
}

TEST(SimulationProperties, NoRequestAndNoTimeIsLostOrInvented) {
  const auto holds = rc::check("any scenario under any policy", [] {
    const Scenario scenario = AnyScenario(*rc::gen::element(DeviceKind::kCpu, DeviceKind::kGpu));
    std::uint64_t offered = 0;
    for (const std::string_view name : ColocationPolicyNames()) {
      const auto result = Simulate(scenario, **MakeColocationPolicy(name));
      CheckSums(scenario, result);
      // Every policy has the same requests to answer.
      if (offered != 0) RC_ASSERT(result.models[0].offered == offered);
      offered = result.models[0].offered;
    }
  });
  EXPECT_TRUE(holds);
}

TEST(SimulationProperties, OnACpuTheIdleClassDelaysNoRequest) {
  const auto holds = rc::check("requests beside training of the idle class", [] {
    Scenario scenario = AnyScenario(DeviceKind::kCpu);
    scenario.machine.limit.reset();
    Scenario requests = scenario;
    requests.trainers.clear();
    for (const char* name : {"idle", "tandem"}) {
      const auto alone = Simulate(requests, **MakeColocationPolicy(name));
      const auto beside = Simulate(scenario, **MakeColocationPolicy(name));
      for (std::size_t i = 0; i < alone.models.size(); ++i) {
        // Training ends some of its steps in between, and times are whole nanoseconds.
        RC_ASSERT(beside.models[i].answered == alone.models[i].answered);
        RC_ASSERT(beside.models[i].max <= alone.models[i].max + 10us);
        RC_ASSERT(beside.models[i].p99 <= alone.models[i].p99 + 10us);
      }
    }
  });
  EXPECT_TRUE(holds);
}

TEST(SimulationProperties, OnAGpuEachKernelOfARequestWaitsForOneOfTrainingAtMost) {
  const auto holds = rc::check("requests that come one at a time", [] {
    Scenario scenario = AnyScenario(DeviceKind::kGpu);
    scenario.models.resize(1);
    Model& model = scenario.models[0];
    model.rate = 1;
    model.poisson = false;
    model.spread = 0;
    nanoseconds own{0};
    nanoseconds longest{0};
    for (const Step& step : model.steps) own += step.time;
    for (const Trainer& trainer : scenario.trainers) {
      for (const Step& step : trainer.steps) longest = std::max(longest, step.time);
    }
    model.slo.reset();
    const auto steps = static_cast<std::int64_t>(model.steps.size());
    for (const char* name : {"idle", "tandem"}) {
      const auto result = Simulate(scenario, **MakeColocationPolicy(name));
      RC_ASSERT(result.models[0].max <= own + steps * (longest + 2ns));
    }
  });
  EXPECT_TRUE(holds);
}

}  // namespace
}  // namespace tandem::simulation
