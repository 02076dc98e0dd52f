// The scenarios that are shipped say what they are there to say.

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "api/base/duration.h"
#include "server/cli/simulate_run.h"

namespace tandem::cli {
namespace {

using simulation::ModelResult;
using simulation::SimulationResult;

SimulationFile Example(const std::string& name, const SimulationChanges& changes = {}) {
  auto file = ReadSimulation(TANDEM_SOURCE_DIR "/examples/simulate/" + name, changes);
  EXPECT_TRUE(file) << file.error().message;
  return file ? *std::move(file) : SimulationFile{};
}

const SimulationResult& Under(const CaseOutcome& outcome, std::string_view policy) {
  for (const PolicyOutcome& under : outcome.policies) {
    if (under.policy == policy) return under.result;
  }
  ADD_FAILURE() << policy;
  return outcome.alone;
}

double Attainment(const SimulationResult& result) {
  const ModelResult& model = result.models[0];
  return static_cast<double>(model.in_time) / static_cast<double>(model.due);
}

// How many times as long a batch of training takes as alone.
double BatchTime(const CaseOutcome& outcome, std::string_view policy) {
  return outcome.training.trainers[0].iterations_per_second / Under(outcome, policy).trainers[0].iterations_per_second;
}

// Published: the SLO of 1.6 s is kept, and a batch of training takes 22 % longer on average, against 2.5 times as long
// with a part of the GPU that keeps the SLO (Hafeez and Gandhi; docs/simulator.md).
TEST(SimulateExamples, HeraldsGateKeepsTheSloAtAModestPrice) {
  const SimulationFile file = Example("herald.json");
  ASSERT_EQ(file.cases.size(), 2);
  const Policies policies = *PoliciesByName({"none", "partition", "op_gate"});
  double gate = 0;
  double parts = 0;
  for (const SimulatedCase& simulated : file.cases) {
    const CaseOutcome outcome = SimulateCase(simulated, policies);
    EXPECT_EQ(Attainment(outcome.alone), 1) << simulated.name;
    EXPECT_LT(Attainment(Under(outcome, "none")), 0.5) << simulated.name << ": unmanaged";
    EXPECT_EQ(Attainment(Under(outcome, "op_gate")), 1) << simulated.name;
    EXPECT_EQ(Attainment(Under(outcome, "partition")), 1) << simulated.name;
    gate += BatchTime(outcome, "op_gate") / 2;
    parts += BatchTime(outcome, "partition") / 2;
  }
  EXPECT_GT(gate, 1.12);
  EXPECT_LT(gate, 1.32);
  EXPECT_GT(parts, 1.3) << "dear, as the published one";
}

// What ./tandem bench colocation came to on 2026-11-18, as far as it is predicted within 15 %; docs/simulator.md has
// the rest, too.
struct Measured {
  std::string_view simulated;
  std::string_view policy;
  double p99;       // Over that alone; 0: not within 15 %.
  double training;  // Over what is left of it alone; 0: not within 15 %.
};

constexpr Measured kMeasured[] = {
    {"load 0.3", "tandem", 1.03, 0.819},
    {"load 0.3", "idle", 0.900, 0.845},
    {"load 0.3", "pause", 0.911, 0.820},
    {"load 0.3", "nice", 1.086, 0.866},
    {"load 0.3", "partition", 0, 0.839},
    {"load 0.5", "tandem", 0.975, 0.768},
    {"load 0.3, quota of 1 core", "tandem", 1.059, 0.909},
    {"load 0.3, quota of 1 core", "idle", 3.38, 0.957},
    {"load 0.3, quota of 1 core", "pause", 1.065, 0.957},
    {"load 0.3, quota of 1 core", "nice", 4.006, 0.931},
    {"load 0.3, quota of 1 core", "none", 0, 0.904},
    {"load 0.6, quota of 1 core", "tandem", 0.993, 0.639},
    {"load 0.6, quota of 1 core", "pause", 1.15, 1.035},
    {"load 0.6, quota of 1 core", "nice", 36.75, 1.127},
    {"load 0.6, quota of 1 core", "idle", 0, 1.153},
};

void ExpectWithin15Percent(double simulated, double measured, const std::string& what) {
  if (measured == 0) return;
  EXPECT_GT(simulated, 0.85 * measured) << what;
  EXPECT_LT(simulated, 1.15 * measured) << what;
}

TEST(SimulateExamples, TheBenchmarkIsPredictedWhereTheDocumentationSaysSo) {
  const SimulationFile file = Example("squeezenet_cpu.json");
  const Policies policies = *PoliciesByName({});
  std::size_t compared = 0;
  for (const SimulatedCase& simulated : file.cases) {
    const CaseOutcome outcome = SimulateCase(simulated, policies);
    for (const Measured& measured : kMeasured) {
      if (measured.simulated != simulated.name) continue;
      ++compared;
      const SimulationResult& result = Under(outcome, measured.policy);
      const std::string what = simulated.name + ", " + std::string(measured.policy);
      const double left = outcome.training.trainers[0].iterations_per_second * (1 - outcome.load());
      ExpectWithin15Percent(Ms(result.models[0].p99) / Ms(outcome.alone.models[0].p99), measured.p99, what + ": p99");
      ExpectWithin15Percent(result.trainers[0].iterations_per_second / left, measured.training, what + ": training");
    }
  }
  EXPECT_EQ(compared, std::size(kMeasured));
}

// Whatever the figures are: which policy is for what.
TEST(SimulateExamples, UnderAQuotaOnlyTandemAndPausingKeepTheLatency) {
  const SimulationFile file = Example("squeezenet_cpu.json");
  const CaseOutcome outcome = SimulateCase(file.cases.at(2), *PoliciesByName({}));
  const double alone = Ms(outcome.alone.models[0].p99);
  for (const PolicyOutcome& under : outcome.policies) {
    const double ratio = Ms(under.result.models[0].p99) / alone;
    if (under.policy == "tandem" || under.policy == "pause") {
      EXPECT_LT(ratio, 1.15) << under.policy;
    } else {
      EXPECT_GT(ratio, 1.3) << under.policy;
    }
  }
}

}  // namespace
}  // namespace tandem::cli
