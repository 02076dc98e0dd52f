#pragma once

#include <chrono>
#include <cstdint>

namespace tandem {

// What was learnt of runs of one size.
struct LearntRun {
  std::int64_t elements = 0;
  std::chrono::nanoseconds typical{0};
  double spread = 1;  // So many times the typical one run in twenty exceeds.

  friend bool operator==(const LearntRun&, const LearntRun&) = default;
};

}  // namespace tandem
