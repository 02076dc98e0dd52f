#pragma once

#include "colocation/policy.h"

namespace tandem {

// The cores that a server and its trainers may run on, and how many of them a CPU limit, rounded up, lets be busy all
// the time.
struct CoreCounts {
  int allowed = 1;
  int usable = 1;
};

// How many threads a trainer has at most where neither the options nor its job say it: those of its part when cores are
// divided. Where the policy says how many are worth their while under the limits of the moment (`paced`: it can tell)
// there may be one for each core, else no more than a limit lets run. The server and the simulator ask this.
[[nodiscard]] inline int TrainerThreads(const ColocationPolicy& policy, CoreCounts cores, bool paced) {
  if (const auto serving = policy.ServingCores(cores.allowed)) return cores.allowed - *serving;
  return policy.heeds_quotas() && paced ? cores.allowed : cores.usable;
}

}  // namespace tandem
