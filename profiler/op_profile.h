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

// The last runs of one trainer's operators.
struct RecentOps {
  struct Op {
    OpInfo info;
    bool heavy = false;
  };
  std::int64_t job = 0;        // That it trains.
  std::vector<Op> ops;         // By their places.
  std::vector<OpRecord> runs;  // Of these, or of others; a trainer tells what it likes.
};

}  // namespace tandem
