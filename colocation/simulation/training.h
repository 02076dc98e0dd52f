#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "colocation/policy.h"
#include "colocation/simulation/event_clock.h"
#include "colocation/simulation/result.h"
#include "colocation/simulation/scenario.h"
#include "colocation/simulation/stream.h"

namespace tandem::simulation {

// The trainers of a simulation, which repeat their iterations for ever. Used by one thread.
class Training {
 public:
  // The scenario is borrowed and outlives it. `threads` is what a trainer has at most. On a CPU steps are joined unless
  // something may change between them.
  Training(const Scenario& scenario, int threads, bool steps_matter);

  [[nodiscard]] std::span<Stream> streams() { return streams_; }
  [[nodiscard]] bool empty() const { return streams_.empty(); }
  // To be called when steps are done: goes on to the next ones, with so many threads; 0: all that a trainer has.
  void StepsDone(int threads, std::uint64_t& order);
  // So much time has passed, in which who was blocked was so for this reason.
  void Held(Time time, std::optional<HoldReason> reason);

  // What counts begins now.
  void Mark();
  // So much later.
  [[nodiscard]] std::vector<TrainerResult> Finish(std::chrono::nanoseconds time) const;

 private:
  struct Plan {
    std::vector<std::vector<Step>> by_threads;  // The first with one.
    std::vector<double> before;  // Of an iteration with all threads, the time that the steps before each take.
    double whole = 0;
    std::uint64_t iterations = 0;
    double marked = 0;
    HeldTimes held{};
  };
  [[nodiscard]] double Progress(std::size_t trainer) const;

  // Constant after construction.
  const Scenario& scenario_;

  std::vector<Plan> plans_;
  std::vector<Stream> streams_;
};

}  // namespace tandem::simulation
