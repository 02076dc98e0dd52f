#pragma once

#include <optional>
#include <vector>

#include "colocation/arbitrated_machine.h"
#include "colocation/demand_meter.h"
#include "colocation/policy.h"
#include "colocation/quota_ledger.h"
#include "colocation/quota_looks.h"
#include "colocation/simulation/cpu_account.h"
#include "colocation/simulation/event_clock.h"
#include "colocation/simulation/scenario.h"

namespace tandem::simulation {

// Asks a policy when the server's arbiter would, with the same snapshot: of the machine, of the requests under way, of
// the trainers, none of which is ever paused, and of what the server's own ledger makes of a CPU limit. No operator is
// measured to slow requests. Used by one thread.
class Arbitration {
 public:
  // The policy, the clock and the account (null: no limit) are borrowed. `served` is the CPU time of requests so far.
  Arbitration(const Scenario& scenario, const ColocationPolicy& policy, const EventClock& clock,
              const CpuAccount* account, const double& served);

  // Requests: under way now, and answered so far.
  struct Requests {
    std::int64_t pending = 0;
    std::uint64_t answered = 0;
  };
  // Asks when that is due.
  void Handle(Time now, const Requests& requests);
  // When it is due although nothing happens.
  [[nodiscard]] Time next_look() const { return next_look_; }
  [[nodiscard]] const ColocationDecision& decision() const { return decision_; }

 private:
  void Ask(Time now, const Requests& requests);

  // Constant after construction.
  const ColocationPolicy& policy_;
  const ArbitratedMachine machine_;
  const int trainers_;
  const bool gated_;
  const double& served_;

  std::optional<QuotaLedger> ledger_;  // Nullopt: the policy heeds no limit, or there is none.
  ColocationDecision decision_;
  Time next_look_ = kNever;
  std::int64_t pending_ = 0;  // As of the last event.
  bool hears_of_requests_ = false;
  DemandMeter demand_;
  QuotaLooks looks_;
};

}  // namespace tandem::simulation
