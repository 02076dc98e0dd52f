#include "colocation/arbiter.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "api/base/thread_name.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;

std::chrono::nanoseconds ThisProcess() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

}  // namespace

Arbiter::Arbiter(const Clock& clock, const ColocationPolicy& policy, CpuLimitMeters limits, ArbitratedMachine machine,
                 FlightRecorder* recorder, TrainingToll* toll)
    : clock_(clock), policy_(policy), machine_(machine), notes_(recorder), toll_(toll) {
  if (policy_.heeds_quotas()) {
    served_ = ThisProcess();
    for (auto& meter : limits.meters) {
      ledgers_.emplace_back(std::move(meter), clock_, machine_.all_cores, [this] { return served_; });
    }
  }
  {
    const MutexLock lock(mu_);
    state_.policy = policy_.name();
    for (QuotaLedger& ledger : ledgers_) {
      ledger.Look();
      state_.quotas.push_back({.group = ledger.name()});
    }
    ReadLedgers();
  }
  const bool decides = policy_.heeds_requests() || policy_.gated_ops() != GatedOps::kNone;
  if (!ledgers_.empty() || decides) thread_ = std::thread([this] { Run(); });
}

Arbiter::~Arbiter() {
  stopping_.store(true);
  news_.Notify();
  if (thread_.joinable()) thread_.join();
}

std::unique_ptr<TrainerLease> Arbiter::Admit(const ArbitratedTrainer& trainer) {
  std::uint64_t id = 0;
  {
    const MutexLock lock(mu_);
    id = next_trainer_++;
    trainers_[id] = {.id = id, .who = trainer, .reins = TrainerReins(trainer.pidfd, trainer.pid, trainer.board)};
    TellToll(trainers_[id]);
    notes_.Began(clock_.Now(), id, trainer.threads, Standing(), trainer.job);
  }
  news_.Notify();
  return std::unique_ptr<TrainerLease>(new TrainerLease(*this, id));
}

void Arbiter::RequestBegan(ModelBit model) {
  TellEdge(requests_.Began(model), model);
}

void Arbiter::RequestEnded(ModelBit model) {
  TellEdge(requests_.Ended(model), model);
}

void Arbiter::TellEdge(RequestsUnderWay::Edge edge, ModelBit model) {
  if ((edge.of_all && hears_of_requests_.load()) || (edge.of_model && (hears_of_models_.load() & SetOf(model)) != 0)) {
    news_.Notify();
  }
}

ArbiterState Arbiter::State() const {
  const MutexLock lock(mu_);
  ArbiterState state = state_;
  state.pending = requests_.pending();
  for (const auto& [id, trainer] : trainers_) {
    state.trainers.push_back({.job = trainer.who.job,
                              .pid = trainer.who.pid,
                              .threads = trainer.who.threads,
                              .ordered = trainer.threads,
                              .permit = trainer.reins.permit(),
                              .means = trainer.reins.means(),
                              .hold = trainer.reason()});
  }
  return state;
}

std::optional<ColocationDecision> Arbiter::Decide(ColocationSnapshot seen) {
  if (!ledgers_.empty()) served_ = ThisProcess();
  QuotaLooks::Known known;
  views_.clear();
  for (QuotaLedger& ledger : ledgers_) {
    ledger.Look();
    known.learning |= ledger.learning();
    known.fresh |= ledger.fresh();
    if (ledger.view()) views_.push_back(*ledger.view());
  }
  seen.quotas = views_;
  if (!ledgers_.empty()) {
    demand_.Look(clock_.Now(), {.used = served_, .answered = requests_.answered(), .pending = seen.pending});
    seen.demand = demand_.demand();
  }
  seen.now = clock_.Now().time_since_epoch();
  const bool hears = policy_.HearsOfRequests(seen);
  if (!hears_of_requests_.exchange(hears) && hears) return std::nullopt;
  ColocationDecision decision = policy_.Decide(seen);
  held_to_learn_ = !ledgers_.empty() && looks_.Adjust(known, clock_.Now(), decision);
  return decision;
}

bool Arbiter::NobodyToHold() const {
  return std::ranges::all_of(
      trainers_, [](const auto& entry) { return entry.second.exempt || entry.second.stands() || entry.second.lost; });
}

void Arbiter::ApplyTo(Trainer& trainer, std::optional<HoldReason> hold) {
  if (trainer.exempt || trainer.stands()) hold.reset();
  if (trainer.lost || trainer.held == hold) return;
  if (trainer.held.has_value() != hold.has_value() && !trainer.reins.Hold(hold.has_value(), clock_.Now())) {
    trainer.lost = true;
    hold.reset();
  }
  const MonotonicTime now = clock_.Now();
  if (trainer.held) trainer.total[static_cast<std::size_t>(*trainer.held)] += now - trainer.since;
  trainer.held = hold;
  trainer.since = now;
  TellNotes(trainer, now);
  TellToll(trainer);
}

void Arbiter::ReadLedgers() {
  for (std::size_t i = 0; i < ledgers_.size(); ++i) {
    state_.quotas[i].limit = ledgers_[i].limit();
    state_.quotas[i].learning = ledgers_[i].learning();
    state_.quotas[i].throttled_periods = ledgers_[i].throttled();
  }
  state_.demand = ledgers_.empty() ? std::nullopt : demand_.demand();
}

void Arbiter::TellToll(Trainer& trainer, bool there) {
  const bool runs = there && !trainer.held && !trainer.stands();
  if (trainer.runs == runs || toll_ == nullptr) return;
  trainer.runs = runs;
  if (runs) {
    toll_->TrainerRuns();
  } else {
    toll_->TrainerStops(clock_.Now());
  }
}

void Arbiter::TellNotes(Trainer& trainer, MonotonicTime now) {
  const auto by_itself = [](std::optional<HoldReason> reason) {
    return reason == HoldReason::kPaused || reason == HoldReason::kTurn;
  };
  const std::optional<HoldReason> reason = trainer.reason();
  if (trainer.noted == reason) return;
  const std::optional<HoldReason> before = std::exchange(trainer.noted, reason);
  if (by_itself(before) || by_itself(reason)) {
    notes_.Stands(now, trainer.id, reason, Standing(), trainer.who.job);
  } else {
    notes_.Held(now, trainer.id, reason, trainer.who.job);
  }
}

TrainingNotes::Standing Arbiter::Standing() const {
  TrainingNotes::Standing standing{.trainers = {}, .hold = state_.hold, .hold_heavy = state_.hold_heavy};
  for (const auto& [id, trainer] : trainers_) {
    if (!trainer.stands()) {
      ++standing.trainers.running;
    } else {
      ++(trainer.reason() == HoldReason::kPaused ? standing.trainers.paused : standing.trainers.waiting);
    }
  }
  return standing;
}

void Arbiter::LetOn(Trainer& trainer) {
  trainer.exempt = true;
  ApplyTo(trainer, std::nullopt);
  TellToll(trainer);
  SetPermit(trainer, Permit::kRun);
}

ModelSet Arbiter::GatedModels() const {
  ModelSet models = 0;
  for (const auto& [id, trainer] : trainers_) models |= trainer.gated_models;
  return models;
}

bool Arbiter::AllYield() const {
  return std::ranges::all_of(trainers_, [](const auto& entry) { return entry.second.who.yields; });
}

void Arbiter::SetThreads(Trainer& trainer, int threads) {
  trainer.threads = threads;
  if (trainer.who.board != nullptr) trainer.who.board->SetThreads(threads);
}

void Arbiter::SetPermit(Trainer& trainer, Permit permit, ModelSet slowed) {
  // Of others it need not hear.
  trainer.reins.SetPermit(permit, slowed & trainer.gated_models, clock_.Now());
}

void Arbiter::SetHold(std::optional<HoldReason> hold, std::optional<HoldReason> hold_heavy, TrainingNotes::Seen seen,
                      MonotonicTime now) {
  if (hold == state_.hold && hold_heavy == state_.hold_heavy && seen.learning == told_of_learning_) return;
  state_.hold = hold;
  state_.hold_heavy = hold_heavy;
  told_of_learning_ = seen.learning;
  seen.trainers = Standing().trainers;
  notes_.Decided(now, hold, hold_heavy, seen);
}

std::optional<MonotonicTime> Arbiter::InterruptedUntil(Trainer& trainer, MonotonicTime now) {
  const auto running = trainer.who.board == nullptr ? std::nullopt : trainer.who.board->RunningGated();
  if (!running) return std::nullopt;
  if (trainer.interrupted != running->number) {
    trainer.interrupted = running->number;
    trainer.interrupted_until = now + TrainerBoard::kMostGated;
  }
  if (trainer.interrupted_until <= now) return std::nullopt;
  return trainer.interrupted_until;
}

std::chrono::nanoseconds Arbiter::Apply(const ColocationDecision& decision, const ColocationSnapshot& seen,
                                        MonotonicTime began) {
  SetHold(decision.hold, decision.hold_heavy,
          {.requests = seen.pending, .trainers = {}, .quotas = views_, .learning = held_to_learn_}, began);
  state_.threads = decision.threads;
  state_.decisions.Add(clock_.Now() - began);
  ReadLedgers();
  std::chrono::nanoseconds lasts = decision.look_again;
  for (auto& [id, trainer] : trainers_) {
    const bool ruled = !trainer.exempt && !trainer.paused;
    // Before it is looked what runs: what begins later waits. Nobody would let one on that is lost: whoever cannot be
    // held is not counted any more.
    if (ruled) {
      SetPermit(trainer, decision.hold_heavy && !trainer.lost ? Permit::kLightOnly : Permit::kRun, seen.slowed);
    }
    std::optional<HoldReason> hold = decision.hold;
    // One that stands at its next operator only does that already: heavy ones do not begin.
    if (ruled && !hold && decision.interrupt_heavy && trainer.reins.at_once()) {
      if (const auto until = InterruptedUntil(trainer, began)) {
        hold = decision.hold_heavy;
        lasts = std::min<std::chrono::nanoseconds>(lasts, *until - began);
      }
    }
    const bool stood = trainer.held.has_value();
    ApplyTo(trainer, hold);
    if (!stood && trainer.held && trainer.reins.at_once()) trainer.stops.Add(clock_.Now() - began);
    if (ruled) SetThreads(trainer, decision.threads);
  }
  state_.applied.Add(clock_.Now() - began);
  return lasts;
}

void Arbiter::Run() {
  NameThread("arbiter");
  for (std::uint32_t heard = news_.seen();; heard = news_.seen()) {
    const auto seen = Look();
    if (stopping_.load()) return;
    std::optional<std::chrono::nanoseconds> wait;
    if (seen) {
      const MonotonicTime began = clock_.Now();
      const auto decision = Decide(*seen);
      if (!decision) continue;
      const MutexLock lock(mu_);
      const std::chrono::nanoseconds lasts = Apply(*decision, *seen, began);
      if (lasts != std::chrono::nanoseconds::max()) wait = lasts;
    }
    news_.Wait(heard, wait);
  }
}

std::optional<ColocationSnapshot> Arbiter::Look() {
  const MutexLock lock(mu_);
  state_.yields = AllYield();
  if (NobodyToHold()) {
    hears_of_requests_.store(false);
    hears_of_models_.store(0);
    SetHold(std::nullopt, std::nullopt,
            {.requests = requests_.pending(), .trainers = {}, .quotas = {}, .learning = false}, clock_.Now());
    return std::nullopt;
  }
  const auto trainers = static_cast<int>(
      std::ranges::count_if(trainers_, [](const auto& entry) { return !entry.second.stands() && !entry.second.lost; }));
  // Before it is looked who is there: whoever comes later tells.
  const ModelSet gated = GatedModels();
  hears_of_models_.store(gated);
  ColocationSnapshot seen = machine_.Seen(requests_.pending(), trainers);
  seen.held = state_.hold.has_value();
  seen.slowed = requests_.Among(gated);
  seen.yields = state_.yields;
  return seen;
}

TrainerLease::~TrainerLease() {
  {
    const MutexLock lock(arbiter_.mu_);
    const auto found = arbiter_.trainers_.find(id_);
    arbiter_.LetOn(found->second);
    arbiter_.TellToll(found->second, false);
    arbiter_.trainers_.erase(found);
    arbiter_.notes_.Ended(arbiter_.clock_.Now(), id_, arbiter_.Standing());
  }
  arbiter_.news_.Notify();
}

void TrainerLease::SetPaused(bool paused) {
  {
    const MutexLock lock(arbiter_.mu_);
    Arbiter::Trainer& trainer = arbiter_.trainers_.at(id_);
    trainer.paused = paused;
    // First: it is not to get on by an operator in between.
    if (!trainer.exempt) arbiter_.SetPermit(trainer, paused ? Permit::kHold : Permit::kRun);
    if (paused) arbiter_.ApplyTo(trainer, std::nullopt);
    arbiter_.TellNotes(trainer, arbiter_.clock_.Now());
    arbiter_.TellToll(trainer);
  }
  arbiter_.news_.Notify();
}

void TrainerLease::SetWaiting(bool waiting) {
  {
    const MutexLock lock(arbiter_.mu_);
    Arbiter::Trainer& trainer = arbiter_.trainers_.at(id_);
    if (trainer.waits == waiting) return;
    trainer.waits = waiting;
    // Before it goes on, if it is to wait all the same.
    arbiter_.ApplyTo(trainer, waiting ? std::nullopt : arbiter_.state_.hold);
    arbiter_.TellNotes(trainer, arbiter_.clock_.Now());
    arbiter_.TellToll(trainer);
  }
  arbiter_.news_.Notify();
}

void TrainerLease::SetPausedAtBoundary(bool paused) {
  const MutexLock lock(arbiter_.mu_);
  Arbiter::Trainer& trainer = arbiter_.trainers_.at(id_);
  trainer.paused_at_boundary = paused;
  arbiter_.TellNotes(trainer, arbiter_.clock_.Now());
}

void TrainerLease::SetExempt() {
  const MutexLock lock(arbiter_.mu_);
  Arbiter::Trainer& trainer = arbiter_.trainers_.at(id_);
  arbiter_.LetOn(trainer);
  arbiter_.TellNotes(trainer, arbiter_.clock_.Now());
}

void TrainerLease::SetGated(const GatedPlaces& ops) {
  {
    const MutexLock lock(arbiter_.mu_);
    Arbiter::Trainer& trainer = arbiter_.trainers_.at(id_);
    if (trainer.gated == ops || trainer.who.board == nullptr) return;
    trainer.who.board->SetGated(ops);
    trainer.gated = ops;
    trainer.gated_models = 0;
    for (const auto& [place, models] : ops) trainer.gated_models |= models;
  }
  arbiter_.news_.Notify();
}

std::optional<OverwrittenBoard> TrainerLease::RestoreOrders() {
  const MutexLock lock(arbiter_.mu_);
  TrainerBoard* const board = arbiter_.trainers_.at(id_).who.board;
  return board == nullptr ? std::nullopt : board->Restore();
}

bool TrainerLease::held() const {
  const MutexLock lock(arbiter_.mu_);
  return arbiter_.trainers_.at(id_).held.has_value();
}

bool TrainerLease::lost() const {
  const MutexLock lock(arbiter_.mu_);
  return arbiter_.trainers_.at(id_).lost;
}

HoldMeans TrainerLease::means() const {
  const MutexLock lock(arbiter_.mu_);
  return arbiter_.trainers_.at(id_).reins.means();
}

std::map<HoldReason, std::chrono::nanoseconds> TrainerLease::HeldTimes() const {
  const MutexLock lock(arbiter_.mu_);
  const Arbiter::Trainer& trainer = arbiter_.trainers_.at(id_);
  auto total = trainer.total;
  if (trainer.held) total[static_cast<std::size_t>(*trainer.held)] += arbiter_.clock_.Now() - trainer.since;
  std::map<HoldReason, std::chrono::nanoseconds> times;
  for (const HoldReason reason : kHoldReasons) {
    const auto time = total[static_cast<std::size_t>(reason)];
    if (time > std::chrono::nanoseconds(0)) times[reason] = time;
  }
  return times;
}

AcknowledgementTimes TrainerLease::Stops() const {
  const MutexLock lock(arbiter_.mu_);
  return arbiter_.trainers_.at(id_).stops;
}

}  // namespace tandem
