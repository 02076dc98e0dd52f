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

}  // namespace
}  // namespace tandem::cli
