#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "api/base/clock.h"
#include "api/base/op_gate.h"

namespace tandem {

// What became of one operator so far.
struct OpTotals {
  OpInfo op;
  OpWork work;  // Of one run.
  std::uint64_t count = 0;
  std::chrono::nanoseconds total{0};    // Without waiting at the gate, with standing still inside.
  std::chrono::nanoseconds typical{0};  // About half of its runs take longer.
};

// One run of an operator.
struct OpRecord {
  std::uint32_t op = 0;  // Its place.
  MonotonicTime began;
  std::chrono::nanoseconds took{0};

  [[nodiscard]] MonotonicTime ended() const { return began + took; }
};

}  // namespace tandem
