#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/base/result.h"
#include "colocation/policy.h"
#include "server/cli/simulate_report.h"
#include "server/cli/simulate_scenario.h"

namespace tandem::cli {

using Policies = std::vector<std::unique_ptr<const ColocationPolicy>>;

// By name, all that there are when none is named; kInvalidArgument lists them.
[[nodiscard]] Result<Policies> PoliciesByName(const std::vector<std::string>& names);

// Requests alone, training alone, and both under each policy.
[[nodiscard]] CaseOutcome SimulateCase(const SimulatedCase& simulated, const Policies& policies);

}  // namespace tandem::cli
