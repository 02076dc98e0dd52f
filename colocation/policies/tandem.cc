#include "colocation/policies/tandem.h"

#include <algorithm>
#include <cmath>

namespace tandem {
namespace {

using std::chrono::nanoseconds;

// When so much lasts for what requests need until the refill, if nothing is used before.
nanoseconds UntilItLasts(const ColocationSnapshot& snapshot, nanoseconds left, nanoseconds until_refill) {
  nanoseconds no{0};
  nanoseconds yes = until_refill;
  while (yes - no > TandemPolicy::kShortestLook) {
    const nanoseconds middle = (no + yes) / 2;
    (left >= TandemPolicy::Need(snapshot, until_refill - middle) ? yes : no) = middle;
  }
  return yes;
}

}  // namespace

nanoseconds TandemPolicy::Need(const ColocationSnapshot& snapshot, nanoseconds time) {
  const auto at_most = static_cast<double>(time.count()) * std::max(snapshot.parallelism, 1);
  double need = at_most;
  if (snapshot.demand) {
    const RequestDemand& demand = *snapshot.demand;
    const double mean = demand.cores * static_cast<double>(time.count());
    const double deviation = std::sqrt(mean * static_cast<double>(demand.uneven.count()));
    const auto each = static_cast<double>(demand.each.count());
    // One more: the first after a quiet time is not expected by what was used before.
    const double known = each * static_cast<double>(snapshot.pending + 1);
    need = std::min(at_most, known + mean + kDeviations * deviation);
  }
  return nanoseconds(std::llround(need));
}

ColocationDecision TandemPolicy::Decide(const ColocationSnapshot& snapshot) const {
  ColocationDecision decision;
  if (snapshot.gated && snapshot.pending > 0) decision.hold_heavy = HoldReason::kRequests;
  for (const QuotaView& quota : snapshot.quotas) {
    const nanoseconds margin = snapshot.held ? std::min<nanoseconds>(kUncounted, quota.quota / 8) : nanoseconds(0);
    const nanoseconds left = quota.left - margin;
    const int trainers = std::max(snapshot.trainers, 1);
    const auto lasts_for = quota.until_refill > nanoseconds(0) ? left / quota.until_refill / trainers : 1;
    const int threads = static_cast<int>(std::clamp<std::int64_t>(lasts_for, 1, std::max(snapshot.parallelism, 1)));
    decision.threads = decision.threads == 0 ? threads : std::min(decision.threads, threads);
    const nanoseconds spare = left - Need(snapshot, quota.until_refill);
    nanoseconds look = std::clamp<nanoseconds>(spare / (threads * trainers), kShortestLook, kRunningLook);
    if (spare < nanoseconds(0)) {
      decision.hold = HoldReason::kQuota;
      look = std::max<nanoseconds>(UntilItLasts(snapshot, left, quota.until_refill), kShortestLook);
    }
    decision.look_again = std::min({decision.look_again, look, quota.until_refill});
  }
  return decision;
}

}  // namespace tandem
