// The scenarios that are shipped say what they are there to say.

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "api/base/duration.h"
#include "api/wire/json_document.h"
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

// What ./tandem bench colocation came to, in the form of its --json: tests/server/cli/measured_colocation.json. A later
// run's file takes its place as it is; examples/simulate/compare.py says which figures miss then.
constexpr std::string_view kCells = "squeezenet beside squeezenet, ";
constexpr std::string_view kP99 = "p99 beside training ÷ alone";
constexpr std::string_view kTraining = "training ÷ what is left of it alone";

// Not predicted within 15 %, or only just; docs/simulator.md says what is known of the reasons.
struct Missed {
  std::string_view cell;
  std::string_view metric;
};
constexpr Missed kMissed[] = {
    {"load 0.3, tandem", kP99},
    {"load 0.3, idle", kP99},
    {"load 0.3, nice", kP99},
    {"load 0.3, pause", kP99},
    {"load 0.3, pause", kTraining},
    {"load 0.3, time_slice", kP99},
    {"load 0.3, time_slice", kTraining},
    {"load 0.3, op_gate", kP99},
    {"load 0.3, op_gate", kTraining},
    {"load 0.5, none", kP99},
    {"load 0.5, none", kTraining},
    {"load 0.5, nice", kTraining},
    {"load 0.5, idle", kP99},
    {"load 0.5, pause", kP99},
    {"load 0.5, partition", kP99},
    {"load 0.6, quota of 1 core, none", kP99},
    {"load 0.6, quota of 1 core, idle", kP99},
    {"load 0.6, quota of 1 core, partition", kP99},
};

bool IsMissed(std::string_view cell, std::string_view metric) {
  return std::ranges::any_of(kMissed, [&](const Missed& m) { return m.cell == cell && m.metric == metric; });
}

TEST(SimulateExamples, TheBenchmarkIsPredictedWhereTheDocumentationSaysSo) {
  const auto measured = ReadJsonFile(TANDEM_SOURCE_DIR "/tests/server/cli/measured_colocation.json");
  ASSERT_TRUE(measured) << measured.error().message;
  const SimulationFile file = Example("squeezenet_cpu.json");
  const Policies policies = *PoliciesByName({});
  std::map<std::string, double, std::less<>> simulated;  // By cell and metric.
  for (const SimulatedCase& one : file.cases) {
    const CaseOutcome outcome = SimulateCase(one, policies);
    const double left = outcome.training.trainers[0].iterations_per_second * (1 - outcome.load());
    for (const PolicyOutcome& under : outcome.policies) {
      const std::string cell = one.name + ", " + under.policy;
      simulated[cell + std::string(kP99)] = Ms(under.result.models[0].p99) / Ms(outcome.alone.models[0].p99);
      simulated[cell + std::string(kTraining)] = under.result.trainers[0].iterations_per_second / left;
    }
  }
  std::size_t compared = 0;
  for (const Json::Value& row : (*measured)["rows"]) {
    const std::string cell = row["cell"].asString();
    const std::string metric = row["metric"].asString();
    if (!cell.starts_with(kCells) || !row["value"].isNumeric()) continue;
    const auto found = simulated.find(cell.substr(kCells.size()) + metric);
    if (found == simulated.end() || IsMissed(cell.substr(kCells.size()), metric)) continue;
    ++compared;
    EXPECT_NEAR(found->second / row["value"].asDouble(), 1, 0.15) << cell << ": " << metric;
  }
  EXPECT_GE(compared, 38) << "of 56: what is exempt is in the list above";
}

// Whatever the figures are: which policy is for what. One that stands still for every request comes near.
TEST(SimulateExamples, UnderAQuotaOnlyTandemKeepsTheLatency) {
  const SimulationFile file = Example("squeezenet_cpu.json");
  const CaseOutcome outcome = SimulateCase(file.cases.at(2), *PoliciesByName({}));
  const double alone = Ms(outcome.alone.models[0].p99);
  for (const PolicyOutcome& under : outcome.policies) {
    const double ratio = Ms(under.result.models[0].p99) / alone;
    if (under.policy == "tandem") {
      EXPECT_LT(ratio, 1.15);
    } else if (under.policy == "pause") {
      EXPECT_LT(ratio, 1.5);
    } else {
      EXPECT_GT(ratio, 2) << under.policy;
    }
  }
}

}  // namespace
}  // namespace tandem::cli
