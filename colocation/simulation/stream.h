#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "colocation/simulation/event_clock.h"
#include "colocation/simulation/scenario.h"

namespace tandem::simulation {

// Steps that are done one after the other: a run of requests, or the iterations of a trainer. Who owns it says what
// there is to do, the device how fast it goes. Used by one thread.
struct Stream {
  std::span<const Step> steps;  // Empty: there is nothing to do.
  std::size_t at = 0;
  double scale = 1;         // Of the times of all steps.
  double left = 0;          // Of the step, in nanoseconds at full speed.
  std::uint64_t order = 0;  // Steps that become ready later have a larger one.
  bool begun = false;       // The step has.
  bool lockstep = false;    // Of a trainer: its threads wait for one another.

  // Set by the device.
  double rate = 0;       // Of full speed.
  double use = 0;        // Cores or SMs.
  bool blocked = false;  // It could go on, but the policy keeps it from that.

  [[nodiscard]] bool busy() const { return !steps.empty(); }
  [[nodiscard]] const Step& step() const { return steps[at]; }
  [[nodiscard]] bool StepDone() const { return begun && left < 1; }
  [[nodiscard]] Time StepEnds(Time now) const { return UsedUpAt(now, left, rate); }

  void Load(std::span<const Step> todo, double scaled, std::uint64_t ready) {
    steps = todo;
    scale = scaled;
    GoTo(0, ready);
  }
  void GoTo(std::size_t step_at, std::uint64_t ready) {
    at = step_at;
    left = scale * static_cast<double>(steps[at].time.count());
    order = ready;
    begun = false;
  }
  void Clear() { *this = {}; }
  void Advance(double time) { left -= rate * time; }
};

}  // namespace tandem::simulation
