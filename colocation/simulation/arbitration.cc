#include "colocation/simulation/arbitration.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "colocation/simulation/thread_rules.h"

namespace tandem::simulation {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

// No thread looks more often.
constexpr nanoseconds kShortestLook = 10us;

bool HasHeavySteps(const Trainer& trainer) {
  return std::ranges::any_of(trainer.steps, &Step::heavy);
}

}  // namespace

Arbitration::Arbitration(const Scenario& scenario, const ColocationPolicy& policy, const EventClock& clock,
                         const CpuAccount* account, const double& served)
    : policy_(policy),
      machine_(ArbitratedAs(scenario.machine)),
      trainers_(static_cast<int>(scenario.trainers.size())),
      gated_(policy.gated_ops() == GatedOps::kHeavy && std::ranges::any_of(scenario.trainers, HasHeavySteps)),
      served_(served) {
  if (account != nullptr && policy.heeds_quotas()) {
    ledger_.emplace(MeterOf(*account), clock, machine_.all_cores,
                    [&served] { return nanoseconds(std::llround(served)); });
  }
  if (ledger_ || policy_.heeds_requests()) next_look_ = 0;
}

void Arbitration::Handle(Time now, const Requests& requests) {
  const std::int64_t before = std::exchange(pending_, requests.pending);
  const bool told = hears_of_requests_ && (before == 0) != (requests.pending == 0);
  if (told || now >= next_look_) Ask(now, requests);
}

void Arbitration::Ask(Time now, const Requests& requests) {
  ColocationSnapshot snapshot = machine_.Seen(requests.pending, trainers_);
  snapshot.held = decision_.hold.has_value();
  snapshot.slowed = gated_ && requests.pending > 0 ? kEveryModel : 0;
  snapshot.yields = policy_.trainer_class() == TrainerClass::kIdle;
  snapshot.now = nanoseconds(now);
  std::optional<QuotaView> view;
  if (ledger_) {
    ledger_->Look();
    demand_.Look(
        MonotonicTime(nanoseconds(now)),
        {.used = nanoseconds(std::llround(served_)), .answered = requests.answered, .pending = requests.pending});
    snapshot.demand = demand_.demand();
    view = ledger_->view();
    if (view) snapshot.quotas = {&*view, 1};
  }
  hears_of_requests_ = policy_.HearsOfRequests(snapshot);
  decision_ = policy_.Decide(snapshot);
  if (ledger_) {
    looks_.Adjust({.learning = ledger_->learning(), .fresh = ledger_->fresh()}, MonotonicTime(nanoseconds(now)),
                  decision_);
  }
  const bool sleeps = decision_.look_again == nanoseconds::max();
  next_look_ = sleeps ? kNever : now + std::max(decision_.look_again, kShortestLook).count();
}

}  // namespace tandem::simulation
