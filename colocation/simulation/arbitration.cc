#include "colocation/simulation/arbitration.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tandem::simulation {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

// As of the arbiter.
constexpr auto kLearningLook = 500us;
constexpr auto kLearningTurn = 300ms;
constexpr auto kLearningRest = 2s;
constexpr auto kSettling = 500us;
constexpr auto kLongestLook = 1s;
// No thread looks more often.
constexpr nanoseconds kShortestLook = 10us;

}  // namespace

Arbitration::Arbitration(const ColocationPolicy& policy, const EventClock& clock, const CpuAccount* account,
                         Threads threads, const double& served)
    : policy_(policy), threads_(threads) {
  if (account != nullptr && policy.heeds_quotas()) {
    ledger_.emplace(MeterOf(*account), clock, threads.cores, [&served] { return nanoseconds(std::llround(served)); });
  }
  if (ledger_ || policy_.heeds_requests()) next_look_ = 0;
}

void Arbitration::Handle(Time now, std::int64_t pending) {
  const std::int64_t before = std::exchange(pending_, pending);
  const bool began = before == 0 && pending > 0;
  const bool ended = before > 0 && pending == 0;
  const bool told = policy_.heeds_requests() ? began || ended : decision_.until_asked && began;
  if (told || now >= next_look_) Ask(now, pending);
}

QuotaLedger::Since Arbitration::SinceLastLook(std::int64_t pending) {
  const bool held = decision_.hold.has_value();
  const bool quiet = std::exchange(pending_seen_, pending) == 0 && pending == 0;
  const bool was_held = std::exchange(held_seen_, held);
  if (!quiet || (held && was_held)) return QuotaLedger::Since::kOther;
  return held ? QuotaLedger::Since::kStopped : QuotaLedger::Since::kTrained;
}

void Arbitration::Ask(Time now, std::int64_t pending) {
  ColocationSnapshot snapshot{.pending = pending,
                              .held = decision_.hold.has_value(),
                              .parallelism = threads_.parallelism,
                              .serving = threads_.serving,
                              .now = nanoseconds(now)};
  std::optional<QuotaView> view;
  if (ledger_) {
    ledger_->Look(SinceLastLook(pending));
    view = ledger_->view();
    if (view) snapshot.quotas = {&*view, 1};
  }
  decision_ = policy_.Decide(snapshot);
  if (ledger_) {
    decision_.look_again = std::min<nanoseconds>(decision_.look_again, ledger_->fresh() ? kSettling : kLongestLook);
    if (ledger_->learning()) {
      Learn(now);
    } else {
      learning_since_.reset();
    }
  }
  const bool sleeps = decision_.look_again == nanoseconds::max();
  next_look_ = sleeps ? kNever : now + std::max(decision_.look_again, kShortestLook).count();
}

void Arbitration::Learn(Time now) {
  if (!learning_since_) learning_since_ = now;
  const nanoseconds since = nanoseconds(now - *learning_since_) % (2 * kLearningTurn + kLearningRest);
  if (since < kLearningTurn) decision_.hold = HoldReason::kQuota;
  if (since < 2 * kLearningTurn) decision_.look_again = std::min<nanoseconds>(decision_.look_again, kLearningLook);
}

}  // namespace tandem::simulation
