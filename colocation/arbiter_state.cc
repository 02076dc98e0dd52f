#include "colocation/arbiter_state.h"

#include <algorithm>
#include <numeric>

namespace tandem {

void DecisionTimes::Add(std::chrono::nanoseconds time) {
  const auto bound = std::ranges::lower_bound(kBounds, time);
  ++counts[static_cast<std::size_t>(bound - kBounds.begin())];
  sum += time;
}

std::uint64_t DecisionTimes::count() const {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

}  // namespace tandem
