#include "colocation/simulation/arbitration.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tandem::simulation {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

// No thread looks more often.
constexpr nanoseconds kShortestLook = 10us;

}  // namespace

Arbitration::Arbitration(const ColocationPolicy& policy, const EventClock& clock, const CpuAccount* account,
                         Threads threads, const double& served)
    : policy_(policy), threads_(threads), served_(served) {
  if (account != nullptr && policy.heeds_quotas()) {
    ledger_.emplace(MeterOf(*account), clock, threads.all, [&served] { return nanoseconds(std::llround(served)); });
  }
  if (ledger_ || policy_.heeds_requests()) next_look_ = 0;
}

void Arbitration::Handle(Time now, const Requests& requests) {
  const std::int64_t before = std::exchange(pending_, requests.pending);
  const bool told = hears_of_requests_ && (before == 0) != (requests.pending == 0);
  if (told || now >= next_look_) Ask(now, requests);
}

void Arbitration::Ask(Time now, const Requests& requests) {
  ColocationSnapshot snapshot{.pending = requests.pending,
                              .held = decision_.hold.has_value(),
                              .parallelism = threads_.all,
                              .serving = threads_.serving,
                              .now = nanoseconds(now)};
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
