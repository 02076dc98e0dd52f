#pragma once

#include <cstdint>
#include <span>

#include "api/base/result.h"
#include "memory/lane.h"

namespace tandem {

// What sessions have of a device, in bytes; together no more than 2^64 - 1.
struct LaneUse {
  std::uint64_t persistent = 0;  // ΣP
  std::uint64_t lanes = 0;       // ΣL, each lane with the larger of its two lengths.

  [[nodiscard]] std::uint64_t total() const { return persistent + lanes; }
  friend bool operator==(const LaneUse&, const LaneUse&) = default;
};

// The safety condition: ΣP + ΣL ≤ allowed, where in every lane L ≥ max E. Also that no lane becomes longer than that,
// that none is empty, and that nobody shares the lane of a session that takes no turns. kInternal says what is wrong.
[[nodiscard]] Result<LaneUse> CheckSafe(std::span<const Lane> lanes, std::uint64_t allowed);

// Ends the process if it does not hold, in every build: memory that was promised twice would be overwritten later, and
// by somebody else.
LaneUse AssertSafe(std::span<const Lane> lanes, std::uint64_t allowed);

}  // namespace tandem
