#pragma once

#include <optional>
#include <vector>

#include "colocation/policy.h"
#include "colocation/quota_ledger.h"
#include "colocation/simulation/cpu_account.h"
#include "colocation/simulation/event_clock.h"

namespace tandem::simulation {

// Asks a policy when the server's arbiter would, with the same snapshot: of the requests under way, and of what the
// server's own ledger makes of a CPU limit. Used by one thread.
class Arbitration {
 public:
  struct Threads {
    int cores = 1;
    int parallelism = 1;  // As of ColocationSnapshot.
    int serving = 1;
  };

  // The policy, the clock and the account (null: no limit) are borrowed. `served` is the CPU time of requests so far.
  Arbitration(const ColocationPolicy& policy, const EventClock& clock, const CpuAccount* account, Threads threads,
              const double& served);

  // Asks when that is due; `pending` requests are under way now.
  void Handle(Time now, std::int64_t pending);
  // When it is due although nothing happens.
  [[nodiscard]] Time next_look() const { return next_look_; }
  [[nodiscard]] const ColocationDecision& decision() const { return decision_; }

 private:
  [[nodiscard]] QuotaLedger::Since SinceLastLook(std::int64_t pending);
  void Ask(Time now, std::int64_t pending);
  // What to do while it is not known when periods begin.
  void Learn(Time now);

  // Constant after construction.
  const ColocationPolicy& policy_;
  const Threads threads_;

  std::optional<QuotaLedger> ledger_;  // Nullopt: the policy heeds no limit, or there is none.
  ColocationDecision decision_;
  Time next_look_ = kNever;
  std::int64_t pending_ = 0;  // As of the last event.
  std::int64_t pending_seen_ = 0;
  bool held_seen_ = false;
  std::optional<Time> learning_since_;
};

}  // namespace tandem::simulation
