#pragma once

#include <vector>

#include "colocation/simulation/result.h"

namespace tandem::cli {

// Several simulations of one scenario as one: counts are added up, times and rates are medians, and what was held or
// used is the average. Not empty; all have the same models and trainers.
[[nodiscard]] simulation::SimulationResult CombineRounds(const std::vector<simulation::SimulationResult>& rounds);

}  // namespace tandem::cli
