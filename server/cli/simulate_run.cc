#include "server/cli/simulate_run.h"

#include <algorithm>

#include "colocation/policies/idle.h"
#include "colocation/simulation/simulation.h"
#include "server/cli/simulate_rounds.h"

namespace tandem::cli {
namespace {

simulation::SimulationResult SimulateRounds(simulation::Scenario scenario, int rounds, const ColocationPolicy& policy) {
  std::vector<simulation::SimulationResult> results;
  for (int i = 0; i < rounds; ++i) {
    results.push_back(simulation::Simulate(scenario, policy));
    ++scenario.seed;
  }
  return CombineRounds(results);
}

}  // namespace

Result<Policies> PoliciesByName(const std::vector<std::string>& names) {
  Policies policies;
  for (const std::string& name : names) {
    if (std::ranges::count(names, name) > 1) return Invalid("--policies: '{}' is there twice", name);
    auto policy = MakeColocationPolicy(name);
    if (!policy) return Invalid("--policies: {}", policy.error().message);
    policies.push_back(*std::move(policy));
  }
  if (!names.empty()) return policies;
  for (const std::string_view name : ColocationPolicyNames()) {
    TANDEM_ASSIGN(policies.emplace_back(), MakeColocationPolicy(name));
  }
  return policies;
}

CaseOutcome SimulateCase(const SimulatedCase& simulated, const Policies& policies) {
  CaseOutcome outcome{.simulated = simulated};
  simulation::Scenario requests = simulated.scenario;
  requests.trainers.clear();
  simulation::Scenario training = simulated.scenario;
  training.models.clear();
  // The set-up that hinders neither.
  outcome.alone = SimulateRounds(requests, simulated.rounds, IdlePolicy());
  outcome.training = SimulateRounds(training, simulated.rounds, IdlePolicy());
  for (const auto& policy : policies) {
    outcome.policies.push_back({.policy = std::string(policy->name()),
                                .result = SimulateRounds(simulated.scenario, simulated.rounds, *policy)});
  }
  return outcome;
}

}  // namespace tandem::cli
