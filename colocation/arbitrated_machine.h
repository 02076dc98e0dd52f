#pragma once

#include <algorithm>
#include <cstdint>

#include "colocation/policy.h"

namespace tandem {

// What a server and its trainers run on, as policies are told of it. The server's arbiter and the simulated one have
// the same.
struct ArbitratedMachine {
  int cores = 1;            // That the server and its trainers may use.
  int all_cores = 1;        // That there are: others in their control groups may use those.
  int serving_threads = 1;  // Of the server that compute requests; more may be busy with what comes in and goes out.

  // What is seen with so many requests under way and so many trainers that are not paused: whatever else is known is
  // added by who looks.
  [[nodiscard]] ColocationSnapshot Seen(std::int64_t pending, int trainers) const {
    // Trainers have threads for all cores, however few the server computes with.
    return {
        .pending = pending, .trainers = trainers, .parallelism = cores, .serving = std::min(cores, serving_threads)};
  }
};

}  // namespace tandem
