#include "colocation/policies/tandem.h"

#include <algorithm>

namespace tandem {

ColocationDecision TandemPolicy::Decide(const ColocationSnapshot& snapshot) const {
  ColocationDecision decision;
  std::chrono::nanoseconds wait{0};
  std::chrono::nanoseconds refill = std::chrono::nanoseconds::max();
  const int threads = std::max(snapshot.parallelism, 1);
  for (const QuotaView& quota : snapshot.quotas) {
    refill = std::min(refill, quota.until_refill);
    const std::chrono::nanoseconds lasts = quota.left / threads - kUncounted;  // Whatever runs.
    if (lasts >= quota.until_refill) continue;
    decision.hold = HoldReason::kQuota;
    wait = std::max(wait, quota.until_refill - std::max(lasts, std::chrono::nanoseconds(0)));
  }
  decision.look_again = refill;
  if (decision.hold) decision.look_again = std::min(refill, std::max<std::chrono::nanoseconds>(wait, kShortestLook));
  return decision;
}

}  // namespace tandem
