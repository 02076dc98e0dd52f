#include "profiler/short_runs.h"

#include <algorithm>
#include <bit>

namespace tandem {

ShortRuns::ShortRuns() {
  for (auto& runs : still_to_prove_) runs.store(kProof, std::memory_order_relaxed);
}

bool ShortRuns::Expects(std::size_t input_bytes) const {
  return still_to_prove_[static_cast<std::size_t>(std::bit_width(input_bytes))].load(std::memory_order_relaxed) == 0;
}

void ShortRuns::Observe(std::size_t input_bytes, std::chrono::nanoseconds took) {
  auto& left = still_to_prove_[static_cast<std::size_t>(std::bit_width(input_bytes))];
  const std::int32_t before = left.load(std::memory_order_relaxed);
  const std::int32_t after = took > kLong     ? kProofAfterLong
                             : took >= kShort ? std::max(before, kProof)
                                              : std::max(before - 1, 0);
  if (after != before) left.store(after, std::memory_order_relaxed);
}

}  // namespace tandem
