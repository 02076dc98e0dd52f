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

Arbitration::Arbitration(const ColocationPolicy& policy, const EventClock& clock, const CpuAccount* account, int cores,
                         const double& served)
    : policy_(policy), cores_(cores), served_(served) {
  if (account != nullptr && policy.heeds_quotas()) {
    ledger_.emplace(MeterOf(*account), clock, cores, [&served] { return nanoseconds(std::llround(served)); });
  }
  if (ledger_ || policy_.heeds_requests()) next_look_ = 0;
}

void Arbitration::Handle(Time now, const Requests& requests) {
  const std::int64_t before = std::exchange(pending_, requests.pending);
  const bool told = policy_.heeds_requests() && (before == 0) != (requests.pending == 0);
  if (told || now >= next_look_) Ask(now, requests);
}

void Arbitration::Ask(Time now, const Requests& requests) {
  ColocationSnapshot snapshot{
      .pending = requests.pending, .held = decision_.hold.has_value(), .parallelism = cores_, .now = nanoseconds(now)};
  std::optional<QuotaView> view;
  if (ledger_) {
    ledger_->Look();
    demand_.Look(MonotonicTime(nanoseconds(now)), nanoseconds(std::llround(served_)), requests.answered);
    snapshot.demand = demand_.demand();
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
