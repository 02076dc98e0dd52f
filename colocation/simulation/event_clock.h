#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>

#include "api/base/clock.h"

namespace tandem::simulation {

// Nanoseconds since a simulation began; whole numbers, so that events that fall together do.
using Time = std::int64_t;
inline constexpr Time kNever = INT64_MAX;

// When so much is used up that began to be at this rate; kNever when that is beyond all simulations.
[[nodiscard]] inline Time UsedUpAt(Time now, double amount, double rate) {
  constexpr double kLongest = 1e17;
  if (rate <= 0 || amount >= rate * kLongest) return kNever;
  return now + std::max<Time>(1, static_cast<Time>(std::ceil(amount / rate)));
}

// The time of a simulation for parts that know only clocks. Used by one thread.
class EventClock final : public Clock {
 public:
  // A time that was never set is not taken for one of the simulation.
  [[nodiscard]] static MonotonicTime At(Time time) {
    return MonotonicTime(std::chrono::hours(1) + std::chrono::nanoseconds(time));
  }
  [[nodiscard]] MonotonicTime Now() const override { return At(now_); }
  [[nodiscard]] WallTime WallNow() const override { return WallTime(Now().time_since_epoch()); }
  void Set(Time now) { now_ = now; }

 private:
  Time now_ = 0;
};

}  // namespace tandem::simulation
