#pragma once

#include <algorithm>
#include <cstdint>

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

// How many of its threads a trainer's next operator uses on so many cores while runs of the server have taken some of
// them: its part of those that are left, and one where none is, which goes wherever a core is free for a moment.
// Threads beyond that would have the others wait for them.
[[nodiscard]] inline int ThreadsBesideRuns(int threads, int taken, int cores) {
  const std::int64_t left = std::max(cores - taken, 0);
  return static_cast<int>(std::max<std::int64_t>(1, threads * left / std::max(cores, 1)));
}

}  // namespace tandem
