#include "colocation/policies/tandem.h"

#include <algorithm>
#include <cmath>

namespace tandem {

ColocationDecision TandemPolicy::Decide(const ColocationSnapshot& snapshot) const {
  using std::chrono::nanoseconds;
  ColocationDecision decision;
  const int threads = std::max(snapshot.parallelism, 1);
  for (const QuotaView& quota : snapshot.quotas) {
    const nanoseconds margin = std::min<nanoseconds>(kUncounted, quota.quota / (8 * threads));
    const double busy = snapshot.pending > 0 ? threads : std::clamp<double>(quota.busy.value_or(threads), 1, threads);
    const nanoseconds lasts = nanoseconds(std::llround(static_cast<double>(quota.left.count()) / busy)) -
                              (snapshot.held ? margin : nanoseconds(0));
    nanoseconds look = kRunningLook;
    if (lasts < quota.until_refill) {
      decision.hold = HoldReason::kQuota;
      look = std::max<nanoseconds>(quota.until_refill - std::max(lasts, nanoseconds(0)), kShortestLook);
    }
    decision.look_again = std::min({decision.look_again, look, quota.until_refill});
  }
  return decision;
}

}  // namespace tandem
