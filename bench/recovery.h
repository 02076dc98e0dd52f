#pragma once

#include <vector>

namespace tandem::bench {

// A request after an overload.
struct LaterRequest {
  double due = 0;       // Seconds after the end of the overload.
  bool missed = false;  // Late, refused or failed.
};

// Share in time of those that were due before `seconds`; 1 when none was. Pure, in any order.
[[nodiscard]] double InTimeUntil(const std::vector<LaterRequest>& requests, double seconds);

// Seconds until the last that was missed was due; 0 when none was. Pure, in any order.
[[nodiscard]] double LastMissed(const std::vector<LaterRequest>& requests);

// Seconds until at least `share` of all that were due later was answered in time: single misses at the end, which the
// load makes by itself, are none of the overload's. Pure, in any order.
[[nodiscard]] double RecoveredAfter(std::vector<LaterRequest> requests, double share);

}  // namespace tandem::bench
