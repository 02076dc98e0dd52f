#include "colocation/policies/tandem.h"

#include <algorithm>
#include <cmath>

namespace tandem {

ColocationDecision TandemPolicy::Decide(const ColocationSnapshot& snapshot) const {
  using std::chrono::nanoseconds;
  ColocationDecision decision;
  if (snapshot.gated && snapshot.pending > 0) decision.hold_heavy = HoldReason::kRequests;
  const int threads = std::max(snapshot.parallelism, 1);
  for (const QuotaView& quota : snapshot.quotas) {
    const nanoseconds margin = std::min<nanoseconds>(kUncounted, quota.quota / (8 * threads));
    const auto lasts = [&](double busy) {
      const nanoseconds time(std::llround(static_cast<double>(quota.left.count()) / busy));
      return std::max(time - (snapshot.held ? margin : nanoseconds(0)), nanoseconds(0));
    };
    // Never less than requests could use when they come: what is left must last for them.
    const double least = std::clamp(snapshot.serving, 1, threads);
    const nanoseconds quiet = lasts(std::clamp<double>(quota.busy.value_or(threads), least, threads));
    const nanoseconds always = lasts(threads);
    const nanoseconds now = snapshot.pending > 0 ? always : quiet;
    if (now >= quota.until_refill && always < quota.until_refill) decision.until_asked = true;
    nanoseconds look = kRunningLook;
    if (now < quota.until_refill) {
      decision.hold = HoldReason::kQuota;
      // Nobody tells when the requests are done.
      if (quiet < quota.until_refill) look = std::max<nanoseconds>(quota.until_refill - quiet, kShortestLook);
    }
    decision.look_again = std::min({decision.look_again, look, quota.until_refill});
  }
  return decision;
}

}  // namespace tandem
