#include "colocation/policies/tandem.h"

#include <algorithm>
#include <cmath>

namespace tandem {
namespace {

using std::chrono::nanoseconds;

bool Brief(const ColocationSnapshot& snapshot) {
  return snapshot.demand && snapshot.demand->each < TandemPolicy::kBrief;
}

// Of the cores, each trainer's.
int Share(const ColocationSnapshot& snapshot) {
  return std::max(snapshot.parallelism / std::max(snapshot.trainers, 1), 1);
}

// What training may do under one limit.
struct Pace {
  int threads = 0;  // Of each trainer; 0: they stand still.
  nanoseconds look_again{0};
};

// Training under one limit, of which so much is left.
class Pacer {
 public:
  Pacer(const ColocationSnapshot& snapshot, const QuotaView& quota)
      : snapshot_(snapshot),
        until_refill_(quota.until_refill),
        left_(quota.left - Margin(snapshot, quota)),
        trainers_(std::max(snapshot.trainers, 1)),
        most_threads_(Share(snapshot)),
        beside_(snapshot.pending > 0 && !Brief(snapshot)) {}

  [[nodiscard]] Pace Find() const {
    const int threads = ThreadsFor(until_refill_);
    if (threads > 0) return {.threads = threads, .look_again = UntilItIsLess(threads)};
    return {.threads = 0, .look_again = UntilItLasts()};
  }

 private:
  [[nodiscard]] static nanoseconds Margin(const ColocationSnapshot& snapshot, const QuotaView& quota) {
    const nanoseconds margin = snapshot.held ? TandemPolicy::kUncounted : TandemPolicy::kUncounted / 2;
    return std::min(margin, quota.quota / 8);
  }

  // Threads of each trainer with so much time to the refill, if nothing is used before.
  [[nodiscard]] int ThreadsFor(nanoseconds time) const {
    const nanoseconds need = TandemPolicy::Need(snapshot_, time);
    if (beside_) return Lasting(left_ - need, time, 0);
    return left_ < need ? 0 : Lasting(left_, time, 1);
  }

  [[nodiscard]] int Lasting(nanoseconds spare, nanoseconds time, int least) const {
    if (time <= nanoseconds(0)) return std::max(least, 1);
    return static_cast<int>(std::clamp<std::int64_t>(spare / time / trainers_, least, most_threads_));
  }

  // When training has to stand still at the earliest, if it alone uses what is left; or how often is looked.
  [[nodiscard]] nanoseconds UntilItIsLess(int threads) const {
    const nanoseconds look = TandemPolicy::kRunningLook;
    const int all = threads * trainers_;
    const nanoseconds then = std::max(until_refill_ - look, nanoseconds(0));
    if (left_ - all * look >= TandemPolicy::Need(snapshot_, then)) return look;
    const nanoseconds spare = left_ - TandemPolicy::Need(snapshot_, until_refill_);
    return std::clamp<nanoseconds>(spare / all, TandemPolicy::kShortestLook, look);
  }

  [[nodiscard]] nanoseconds UntilItLasts() const {
    nanoseconds no{0};
    nanoseconds yes = until_refill_;
    while (yes - no > TandemPolicy::kShortestLook) {
      const nanoseconds middle = (no + yes) / 2;
      (ThreadsFor(until_refill_ - middle) > 0 ? yes : no) = middle;
    }
    return std::max<nanoseconds>(yes, TandemPolicy::kShortestLook);
  }

  const ColocationSnapshot& snapshot_;
  const nanoseconds until_refill_;
  const nanoseconds left_;
  const int trainers_;
  const int most_threads_;
  const bool beside_;  // Requests that training would take time from.
};

}  // namespace

nanoseconds TandemPolicy::Need(const ColocationSnapshot& snapshot, nanoseconds time) {
  const double busy = snapshot.demand ? snapshot.demand->busy : 0;
  const double at_most =
      static_cast<double>(time.count()) * (busy > 0 ? std::max(busy, 1.0) : std::max(snapshot.serving, 1));
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

bool TandemPolicy::HearsOfRequests(const ColocationSnapshot& snapshot) const {
  return !snapshot.yields || (!snapshot.quotas.empty() && !Brief(snapshot));
}

ColocationDecision TandemPolicy::Decide(const ColocationSnapshot& snapshot) const {
  ColocationDecision decision;
  if (snapshot.slowed != 0) {
    decision.hold_heavy = HoldReason::kRequests;
    decision.interrupt_heavy = true;
  }
  for (const QuotaView& quota : snapshot.quotas) {
    const Pace pace = Pacer(snapshot, quota).Find();
    if (pace.threads == 0) decision.hold = HoldReason::kQuota;
    const int threads = std::max(pace.threads, 1);
    decision.threads = decision.threads == 0 ? threads : std::min(decision.threads, threads);
    decision.look_again = std::min({decision.look_again, pace.look_again, quota.until_refill});
  }
  if (snapshot.quotas.empty() && snapshot.trainers > 1) decision.threads = Share(snapshot);
  if (!snapshot.yields && snapshot.pending > 0) decision.hold = HoldReason::kRequests;
  return decision;
}

}  // namespace tandem
