#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "api/base/clock.h"
#include "api/base/mutex.h"
#include "api/base/wake_word.h"
#include "colocation/arbiter_state.h"
#include "colocation/arbitrated_machine.h"
#include "colocation/demand_meter.h"
#include "colocation/model_bits.h"
#include "colocation/policy.h"
#include "colocation/quota_ledger.h"
#include "colocation/quota_looks.h"
#include "colocation/requests_under_way.h"
#include "colocation/trainer_board.h"
#include "colocation/trainer_reins.h"
#include "colocation/training_notes.h"
#include "profiler/training_toll.h"

namespace tandem {

class TrainerLease;

// Someone to be stopped and let on. All is borrowed.
struct ArbitratedTrainer {
  int pidfd = -1;                 // A descriptor of its process; -1: there is none.
  TrainerBoard* board = nullptr;  // From now on only the lease gives orders there. Null: it has none.
  int threads = 1;                // At most; for people.
  bool yields = true;             // The kernel takes cores from it as soon as requests want them.
  std::int64_t job = 0;           // That it trains, for people; 0: none.
  int pid = 0;                    // Of its process, a child that is not reaped before its lease ends; 0: not known.
};

// Applies a policy: watches what it depends on, asks it, and stops trainers or lets them on. A trainer is stopped as a
// whole and at once, wherever it is, by signal: so it can neither leave some of its threads behind nor be in the way of
// a request for the rest of an operator. Where signals are refused it waits at its next one. Thread-safe. Its thread
// sleeps when there is nobody to stop, and when the policy needs to look at nothing; it takes no memory and no lock of
// the requests' path.
class Arbiter {
 public:
  // The policy, the clock, and the recorder and the toll, which may be null, are borrowed and outlive it; all leases
  // end before it.
  Arbiter(const Clock& clock, const ColocationPolicy& policy, CpuLimitMeters limits, ArbitratedMachine machine,
          FlightRecorder* recorder = nullptr, TrainingToll* toll = nullptr);
  ~Arbiter();
  Arbiter(const Arbiter&) = delete;
  Arbiter& operator=(const Arbiter&) = delete;

  // Whether it ever stops anybody.
  [[nodiscard]] bool holds() const { return thread_.joinable(); }

  // Takes a trainer under its rule for as long as the lease lasts.
  [[nodiscard]] std::unique_ptr<TrainerLease> Admit(const ArbitratedTrainer& trainer) EXCLUDES(mu_);

  [[nodiscard]] const ColocationPolicy& policy() const { return policy_; }
  // By which requests, and operators that slow them, name their models.
  [[nodiscard]] ModelBits& models() { return models_; }

  // A request for that model was let in, or answered.
  void RequestBegan(ModelBit model = kAnyModel);
  void RequestEnded(ModelBit model = kAnyModel);

  [[nodiscard]] ArbiterState State() const EXCLUDES(mu_);

 private:
  friend class TrainerLease;

  struct Trainer {
    std::uint64_t id = 0;
    ArbitratedTrainer who;
    TrainerReins reins;
    GatedPlaces gated;          // Its operators that wait while heavy ones are held.
    ModelSet gated_models = 0;  // All that those wait for.
    bool exempt = false;
    bool paused = false;
    bool waits = false;               // At a boundary, for its turn among jobs.
    bool paused_at_boundary = false;  // If it waits there, a person said so.
    bool lost = false;                // It cannot be held: its process has gone, or there is no means.
    bool runs = false;                // As the toll was told.
    int threads = 0;                  // As ordered; 0: all that it has.
    // The operator that was stopped last after it had begun, by its number, and when it goes on whatever is decided.
    std::uint64_t interrupted = 0;
    MonotonicTime interrupted_until;
    AcknowledgementTimes stops;
    std::optional<HoldReason> held;
    std::optional<HoldReason> noted;  // Why it stands still, as the recorder was told.
    MonotonicTime since;
    std::array<std::chrono::nanoseconds, kHoldReasons.size()> total{};  // By reason.

    // It computes nothing whatever is decided, and goes on by itself when that ends.
    [[nodiscard]] bool stands() const { return (paused || waits) && !exempt; }
    // Why it stands still; nullopt: it runs.
    [[nodiscard]] std::optional<HoldReason> reason() const {
      if (!stands()) return held;
      return paused || paused_at_boundary ? HoldReason::kPaused : HoldReason::kTurn;
    }
  };

  void Run();
  // What there is to decide about, without quotas; nullopt when there is nobody to hold.
  [[nodiscard]] std::optional<ColocationSnapshot> Look() EXCLUDES(mu_);
  // `seen` without its quotas. Nullopt: requests may have come or gone unheard of, look again.
  [[nodiscard]] std::optional<ColocationDecision> Decide(ColocationSnapshot seen);
  [[nodiscard]] bool NobodyToHold() const REQUIRES(mu_);
  // What was decided just now, from a look that began at that time. Returns how long it lasts if nothing happens.
  std::chrono::nanoseconds Apply(const ColocationDecision& decision, const ColocationSnapshot& seen,
                                 MonotonicTime began) REQUIRES(mu_);
  // Wakes the thread if it is to hear of that.
  void TellEdge(RequestsUnderWay::Edge edge, ModelBit model);
  // Until when it stands still because of the operator that it is in; nullopt: that may go on.
  [[nodiscard]] std::optional<MonotonicTime> InterruptedUntil(Trainer& trainer, MonotonicTime now) REQUIRES(mu_);
  // That some operator waits for.
  [[nodiscard]] ModelSet GatedModels() const REQUIRES(mu_);
  [[nodiscard]] bool AllYield() const REQUIRES(mu_);
  void ReadLedgers() REQUIRES(mu_);
  // Remembers what was decided, and tells the recorder when it is something new, with what it was decided from.
  // Arbiter thread only.
  void SetHold(std::optional<HoldReason> hold, std::optional<HoldReason> hold_heavy, TrainingNotes::Seen seen,
               MonotonicTime now) REQUIRES(mu_);
  [[nodiscard]] TrainingNotes::Standing Standing() const REQUIRES(mu_);
  void ApplyTo(Trainer& trainer, std::optional<HoldReason> hold) REQUIRES(mu_);
  // `slowed` are models with requests under way.
  void SetPermit(Trainer& trainer, Permit permit, ModelSet slowed = 0) REQUIRES(mu_);
  void SetThreads(Trainer& trainer, int threads) REQUIRES(mu_);
  // For good.
  void LetOn(Trainer& trainer) REQUIRES(mu_);
  // Tells the toll when it begins to run or stops.
  void TellToll(Trainer& trainer, bool there = true) REQUIRES(mu_);
  // Tells the recorder when it begins to stand still, for another reason than before, or runs.
  void TellNotes(Trainer& trainer, MonotonicTime now) REQUIRES(mu_);

  // Constant after construction.
  const Clock& clock_;
  const ColocationPolicy& policy_;
  const ArbitratedMachine machine_;
  const TrainingNotes notes_;
  TrainingToll* const toll_;

  ModelBits models_;
  // Changed by whoever brings requests.
  RequestsUnderWay requests_;
  // Whether the arbiter is to be woken when the first request comes and when the last one goes; of all, and of each of
  // these models. Set by its thread.
  std::atomic<bool> hears_of_requests_{false};
  std::atomic<ModelSet> hears_of_models_{0};
  // Told of whatever the thread is to look at.
  WakeWord news_;
  std::atomic<bool> stopping_{false};

  // Arbiter thread only.
  std::chrono::nanoseconds served_{0};  // CPU time of this process, as of the last look.
  std::deque<QuotaLedger> ledgers_;
  std::vector<QuotaView> views_;
  DemandMeter demand_;
  QuotaLooks looks_;
  bool held_to_learn_ = false;     // By the last decision.
  bool told_of_learning_ = false;  // The recorder was, and it goes on.

  mutable Mutex mu_;
  std::map<std::uint64_t, Trainer> trainers_ GUARDED_BY(mu_);
  std::uint64_t next_trainer_ GUARDED_BY(mu_) = 0;
  ArbiterState state_ GUARDED_BY(mu_);

  std::thread thread_;  // Last: it uses the others. None when the policy never holds anybody.
};

// A trainer's place under the arbiter. Lets the trainer on when it goes. Thread-safe.
class TrainerLease {
 public:
  ~TrainerLease();
  TrainerLease(const TrainerLease&) = delete;
  TrainerLease& operator=(const TrainerLease&) = delete;

  // Has it wait at its next operator, or go on. One that waits so is not stopped as well.
  void SetPaused(bool paused);
  // It waits for its turn, and computes nothing until it has that; or goes on, held if others are.
  void SetWaiting(bool waiting);
  // A person has it wait at its next boundary, or lets it on: when it waits there it is for that, and for no turn.
  void SetPausedAtBoundary(bool paused);
  // Lets it on for good: it is not held any more, for no reason.
  void SetExempt();
  // Which of its operators wait while heavy ones are held, and for requests of which models.
  void SetGated(const GatedPlaces& ops);
  // As the board has it.
  std::optional<OverwrittenBoard> RestoreOrders();
  [[nodiscard]] bool held() const;
  // It cannot be held: its process has gone, or there is no means.
  [[nodiscard]] bool lost() const;
  // What holds it, by all that was tried so far.
  [[nodiscard]] HoldMeans means() const;
  // How long it was stopped so far, by reason.
  [[nodiscard]] std::map<HoldReason, std::chrono::nanoseconds> HeldTimes() const;
  // How long it took to stop it, each time: from the beginning of the decision until the signal was sent.
  [[nodiscard]] AcknowledgementTimes Stops() const;

 private:
  friend class Arbiter;
  TrainerLease(Arbiter& arbiter, std::uint64_t id) : arbiter_(arbiter), id_(id) {}

  Arbiter& arbiter_;
  const std::uint64_t id_;
};

}  // namespace tandem
