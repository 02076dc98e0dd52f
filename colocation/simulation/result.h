#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "colocation/hold_reason.h"

namespace tandem::simulation {

// Of the requests that came while it counted: offered = answered + rejected + unfinished.
struct ModelResult {
  std::string name;
  std::uint64_t offered = 0;
  std::uint64_t answered = 0;
  std::uint64_t rejected = 0;    // At arrival, or because its deadline came while it waited.
  std::uint64_t unfinished = 0;  // When the simulation ended.
  std::uint64_t due = 0;         // Have an SLO, and were answered or rejected, or should have been by the end.
  std::uint64_t in_time = 0;     // Of these, answered within it.
  // Of those that were answered; 0 when none was.
  std::chrono::nanoseconds mean{0}, p50{0}, p90{0}, p99{0}, max{0};
};

using HeldTimes = std::array<std::chrono::nanoseconds, kHoldReasons.size()>;  // In the order of kHoldReasons.

struct TrainerResult {
  std::string name;
  double iterations_per_second = 0;
  HeldTimes held{};
};

// What a simulation came to.
struct SimulationResult {
  std::vector<ModelResult> models;
  std::vector<TrainerResult> trainers;
  std::chrono::nanoseconds time{0};  // That counted.
  double capacity = 1;               // Cores or SMs, or what a CPU limit leaves of them.
  // Core or SM seconds.
  double used_by_requests = 0;
  double used_by_training = 0;
  double most_used_in_a_period = 0;     // Of a CPU limit; of all that were simulated.
  std::uint64_t periods = 0;            // Of a CPU limit.
  std::uint64_t throttled_periods = 0;  // Those in which its time was used up.
  std::uint64_t events = 0;             // All, what did not count included.
};

}  // namespace tandem::simulation
