#include "colocation/arbiter.h"

#include <algorithm>
#include <csignal>
#include <ctime>
#include <numeric>
#include <utility>

#include <sys/syscall.h>
#include <unistd.h>

#include "api/base/thread_name.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;

// While it is not known when periods begin it is looked for a beginning this often, for so long, while trainers stand
// still: a group that is throttled all the time shows no beginnings. Then for as long while they run: one that has
// nothing to run shows none either. Then there is a rest.
constexpr auto kLearningLook = 500us;
constexpr auto kLearningTurn = 300ms;
constexpr auto kLearningRest = 2s;
// Until whoever was stopped has left its core.
constexpr auto kSettling = 500us;
// So often, at least, is looked whether a limit was changed.
constexpr auto kLongestLook = 1s;

std::chrono::nanoseconds ThisProcess() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

bool Signal(int pidfd, int number) {
  return ::syscall(SYS_pidfd_send_signal, pidfd, number, nullptr, 0) == 0;
}

}  // namespace

void DecisionTimes::Add(std::chrono::nanoseconds time) {
  const auto bound = std::ranges::lower_bound(kBounds, time);
  ++counts[static_cast<std::size_t>(bound - kBounds.begin())];
  sum += time;
}

std::uint64_t DecisionTimes::count() const {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

Arbiter::Arbiter(const Clock& clock, const ColocationPolicy& policy, CpuLimitMeters limits, ArbitratedMachine machine,
                 FlightRecorder* recorder)
    : clock_(clock), policy_(policy), machine_(machine), notes_(recorder) {
  if (policy_.heeds_quotas()) {
    for (auto& meter : limits.meters) ledgers_.emplace_back(std::move(meter), clock_, machine_.all_cores, ThisProcess);
  }
  {
    const MutexLock lock(mu_);
    state_.policy = policy_.name();
    for (QuotaLedger& ledger : ledgers_) {
      ledger.Look(QuotaLedger::Since::kOther);
      state_.quotas.push_back({.group = ledger.name()});
    }
    ReadLedgers();
  }
  if (!ledgers_.empty() || policy_.heeds_requests()) thread_ = std::thread([this] { Run(); });
}

Arbiter::~Arbiter() {
  {
    const MutexLock lock(mu_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

std::unique_ptr<TrainerLease> Arbiter::Admit(int pidfd, int threads) {
  std::uint64_t id = 0;
  {
    const MutexLock lock(mu_);
    id = next_trainer_++;
    trainers_[id] = {.id = id, .pidfd = pidfd, .threads = threads};
    notes_.Began(clock_.Now(), id, threads, trainers_.size());
  }
  Wake();
  return std::unique_ptr<TrainerLease>(new TrainerLease(*this, id));
}

void Arbiter::Wake() {
  {
    const MutexLock lock(mu_);
    ++news_;
  }
  changed_.NotifyOne();
}

void Arbiter::RequestBegan() {
  if (pending_.fetch_add(1) != 0) return;
  if (policy_.heeds_requests() || until_asked_.load()) Wake();
}

void Arbiter::RequestEnded() {
  if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1 && policy_.heeds_requests()) Wake();
}

ArbiterState Arbiter::State() const {
  const MutexLock lock(mu_);
  ArbiterState state = state_;
  state.pending = pending_.load(std::memory_order_relaxed);
  state.trainers = trainers_.size();
  state.parallelism = Parallelism();
  return state;
}

int Arbiter::Parallelism() const {
  int threads = machine_.run_threads + machine_.other_threads;
  for (const auto& [id, trainer] : trainers_) threads = std::min(machine_.cores, threads + trainer.threads);
  return std::clamp(threads, 1, std::max(machine_.cores, 1));
}

QuotaLedger::Since Arbiter::SinceLastLook(const ColocationSnapshot& seen) {
  // Requests that came and went in between are few.
  const bool quiet = std::exchange(pending_seen_, seen.pending) == 0 && seen.pending == 0;
  const bool was_held = std::exchange(held_seen_, seen.held);
  if (!quiet || (seen.held && was_held)) return QuotaLedger::Since::kOther;
  return seen.held ? QuotaLedger::Since::kStopped : QuotaLedger::Since::kTrained;
}

ColocationDecision Arbiter::Decide(ColocationSnapshot seen) {
  const QuotaLedger::Since since = SinceLastLook(seen);
  bool learning = false;
  bool fresh = false;
  views_.clear();
  for (QuotaLedger& ledger : ledgers_) {
    ledger.Look(since);
    learning |= ledger.learning();
    fresh |= ledger.fresh();
    if (ledger.view()) views_.push_back(*ledger.view());
  }
  seen.quotas = views_;
  seen.now = clock_.Now().time_since_epoch();
  ColocationDecision decision = policy_.Decide(seen);
  until_asked_.store(decision.until_asked);
  // One that came just before that has woken nobody.
  if (decision.until_asked && pending_.load() > 0) decision.look_again = std::chrono::nanoseconds(0);
  if (!ledgers_.empty()) decision.look_again = std::min<std::chrono::nanoseconds>(decision.look_again, kLongestLook);
  if (fresh) decision.look_again = std::min<std::chrono::nanoseconds>(decision.look_again, kSettling);
  if (learning) {
    Learn(decision);
  } else {
    learning_since_.reset();
  }
  return decision;
}

void Arbiter::Learn(ColocationDecision& decision) {
  const MonotonicTime now = clock_.Now();
  if (!learning_since_) learning_since_ = now;
  const auto since = (now - *learning_since_) % (2 * kLearningTurn + kLearningRest);
  const bool rests = since >= 2 * kLearningTurn;
  if (since < kLearningTurn) decision.hold = HoldReason::kQuota;
  if (!rests) decision.look_again = std::min<std::chrono::nanoseconds>(decision.look_again, kLearningLook);
}

bool Arbiter::NobodyToHold() const {
  return std::ranges::all_of(trainers_, [](const auto& entry) { return entry.second.exempt || entry.second.lost; });
}

void Arbiter::ApplyTo(Trainer& trainer, std::optional<HoldReason> hold) {
  if (trainer.exempt) hold.reset();
  if (trainer.lost || trainer.held == hold) return;
  if (trainer.held.has_value() != hold.has_value() && !Signal(trainer.pidfd, hold ? SIGSTOP : SIGCONT)) {
    trainer.lost = true;
    hold.reset();
  }
  const MonotonicTime now = clock_.Now();
  if (trainer.held) trainer.total[*trainer.held] += now - trainer.since;
  trainer.held = hold;
  trainer.since = now;
  notes_.Held(now, trainer.id, hold);
}

void Arbiter::ReadLedgers() {
  for (std::size_t i = 0; i < ledgers_.size(); ++i) {
    state_.quotas[i].limit = ledgers_[i].limit();
    state_.quotas[i].learning = ledgers_[i].learning();
    state_.quotas[i].throttled_periods = ledgers_[i].throttled();
  }
}

void Arbiter::SetHold(std::optional<HoldReason> hold, MonotonicTime now) {
  if (hold == state_.hold) return;
  state_.hold = hold;
  notes_.Decided(now, hold, std::nullopt, {pending_.load(std::memory_order_relaxed), trainers_.size(), views_});
}

void Arbiter::Apply(std::optional<HoldReason> hold, MonotonicTime began) {
  SetHold(hold, began);
  ReadLedgers();
  for (auto& [id, trainer] : trainers_) ApplyTo(trainer, hold);
  state_.decisions.Add(clock_.Now() - began);
}

void Arbiter::Run() {
  NameThread("arbiter");
  while (true) {
    std::uint64_t heard = 0;
    ColocationSnapshot seen;
    {
      const MutexLock lock(mu_);
      while (NobodyToHold() && !stopping_) {
        SetHold(std::nullopt, clock_.Now());
        changed_.Wait(mu_);
      }
      if (stopping_) return;
      heard = news_;
      seen.held = state_.hold.has_value();
      seen.parallelism = Parallelism();
      seen.serving = machine_.run_threads;
    }
    seen.pending = pending_.load(std::memory_order_acquire);
    const MonotonicTime began = clock_.Now();
    const ColocationDecision decision = Decide(seen);
    const MutexLock lock(mu_);
    Apply(decision.hold, began);
    if (news_ != heard || stopping_) continue;
    if (decision.look_again == std::chrono::nanoseconds::max()) {
      changed_.Wait(mu_);
    } else if (decision.look_again > 0ns) {
      changed_.WaitFor(mu_, decision.look_again);
    }
  }
}

TrainerLease::~TrainerLease() {
  const MutexLock lock(arbiter_.mu_);
  const auto found = arbiter_.trainers_.find(id_);
  arbiter_.ApplyTo(found->second, std::nullopt);
  arbiter_.trainers_.erase(found);
  arbiter_.notes_.Ended(arbiter_.clock_.Now(), id_, arbiter_.trainers_.size());
}

void TrainerLease::SetExempt(bool exempt) {
  {
    const MutexLock lock(arbiter_.mu_);
    Arbiter::Trainer& trainer = arbiter_.trainers_.at(id_);
    trainer.exempt = exempt;
    if (exempt) arbiter_.ApplyTo(trainer, std::nullopt);
  }
  if (!exempt) arbiter_.Wake();
}

bool TrainerLease::held() const {
  const MutexLock lock(arbiter_.mu_);
  return arbiter_.trainers_.at(id_).held.has_value();
}

bool TrainerLease::lost() const {
  const MutexLock lock(arbiter_.mu_);
  return arbiter_.trainers_.at(id_).lost;
}

std::map<HoldReason, std::chrono::nanoseconds> TrainerLease::HeldTimes() const {
  const MutexLock lock(arbiter_.mu_);
  const Arbiter::Trainer& trainer = arbiter_.trainers_.at(id_);
  auto times = trainer.total;
  if (trainer.held) times[*trainer.held] += arbiter_.clock_.Now() - trainer.since;
  return times;
}

}  // namespace tandem
