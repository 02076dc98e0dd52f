#pragma once

#include <chrono>

namespace tandem::bench {

// How long and how often: many short windows in turn, so that a noisy minute hits every side alike.
struct Pace {
  double minutes = 0;  // What the whole scenario takes, about; for people.
  int rounds = 1;
  std::chrono::nanoseconds warmup{0};
  std::chrono::nanoseconds window{0};
};

}  // namespace tandem::bench
