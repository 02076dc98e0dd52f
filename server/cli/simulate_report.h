#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <json/value.h>

#include "colocation/simulation/result.h"
#include "server/cli/simulate_scenario.h"

namespace tandem::cli {

struct PolicyOutcome {
  std::string policy;
  simulation::SimulationResult result;
};

// All simulations of one case.
struct CaseOutcome {
  SimulatedCase simulated;
  simulation::SimulationResult alone;     // Requests without training.
  simulation::SimulationResult training;  // Training without requests.
  std::vector<PolicyOutcome> policies;

  // The part of the device that requests use when they are alone.
  [[nodiscard]] double load() const;
};

// Tables of requests and of training, for people.
[[nodiscard]] std::string SimulationTables(const CaseOutcome& outcome);

// The same and more, for programs.
[[nodiscard]] Json::Value SimulationJson(const SimulationFile& file, const std::vector<CaseOutcome>& outcomes);

}  // namespace tandem::cli
