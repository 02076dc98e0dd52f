#pragma once

#include "colocation/policy.h"
#include "colocation/simulation/result.h"
#include "colocation/simulation/scenario.h"

namespace tandem::simulation {

// Runs a scenario under a policy from event to event: no clock, no threads; same arguments, same result. The scenario
// has steps in every model and trainer, none of them shorter than 1 ns times any factor that it names, and an admission
// that is known.
[[nodiscard]] SimulationResult Simulate(const Scenario& scenario, const ColocationPolicy& policy);

}  // namespace tandem::simulation
