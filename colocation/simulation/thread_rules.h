#pragma once

#include <vector>

#include "colocation/arbitrated_machine.h"
#include "colocation/policy.h"
#include "colocation/simulation/scenario.h"

namespace tandem::simulation {

// Threads that the server computes requests with, and that a trainer gets, as the server chooses them by default. Only
// of CPUs.
[[nodiscard]] int ServingThreads(const Machine& machine, const ColocationPolicy& policy);
[[nodiscard]] int TrainerThreads(const Machine& machine, const ColocationPolicy& policy);

// What the server's arbiter would be told of it.
[[nodiscard]] ArbitratedMachine ArbitratedAs(const Machine& machine);

// Whether something may change between two steps of a trainer: they may be gated, or go on with other threads.
[[nodiscard]] bool StepsMatter(const Machine& machine, const ColocationPolicy& policy);

// Steps on so many threads, when those given have all that they can use; `speedup` is what these bring over one. On a
// GPU they are as they are.
[[nodiscard]] std::vector<Step> OnThreads(const Machine& machine, std::vector<Step> steps, int threads, double speedup);

}  // namespace tandem::simulation
