#include "colocation/simulation/simulation.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "api/base/duration.h"
#include "colocation/simulation/arbitration.h"
#include "colocation/simulation/cpu_account.h"
#include "colocation/simulation/device.h"
#include "colocation/simulation/serving.h"
#include "colocation/simulation/thread_rules.h"
#include "colocation/simulation/training.h"

namespace tandem::simulation {
namespace {

// One run. Used once, by one thread.
class Run {
 public:
  Run(const Scenario& scenario, const ColocationPolicy& policy)
      : scenario_(scenario),
        end_((scenario.warmup + scenario.duration).count()),
        device_(MakeDevice(scenario.machine, policy)),
        serving_(scenario, ServingThreads(scenario.machine, policy)),
        training_(scenario, TrainerThreads(scenario.machine, policy), StepsMatter(scenario.machine, policy)) {
    const Machine& machine = scenario.machine;
    const bool limited = machine.limit && machine.limit->cores() < machine.width;
    if (limited) account_.emplace(*machine.limit);
    if (!training_.empty()) arbitration_.emplace(scenario, policy, clock_, account_ ? &*account_ : nullptr, served_);
  }

  SimulationResult Go() {
    Settle();
    while (now_ < end_) Next(end_);
    SimulationResult result = Counted();
    const Time drained = end_ + scenario_.drain.count();
    while (now_ < drained && serving_.pending() > 0) Next(drained);
    result.models = serving_.Finish(now_);
    result.events = events_;
    return result;
  }

 private:
  // What the policy and the device make of what has happened.
  void Settle() {
    Permits permits{.stalled = account_ && account_->dry()};
    if (arbitration_) {
      arbitration_->Handle(now_, {.pending = serving_.pending(), .answered = serving_.answered()});
      permits.hold = arbitration_->decision().hold.has_value();
      permits.hold_heavy = arbitration_->decision().hold_heavy.has_value();
    }
    device_->Share(serving_.runs(), training_.streams(), permits);
    serving_use_ = training_use_ = 0;
    for (const Stream& run : serving_.runs()) serving_use_ += run.use;
    for (const Stream& trainer : training_.streams()) training_use_ += trainer.use;
  }

  // To the next event, or to the end.
  void Next(Time end) {
    Advance(std::min(NextEvent(), end));
    if (!marked_ && now_ >= scenario_.warmup.count()) Mark();
    if (account_) account_->Refill(now_);
    serving_.StepsDone(now_, order_);
    training_.StepsDone(arbitration_ ? arbitration_->decision().threads : 0, order_);
    serving_.Handle(now_, order_);
    Settle();
    ++events_;
  }

  [[nodiscard]] Time NextEvent() {
    Time next = serving_.NextEvent();
    if (!marked_) next = std::min(next, scenario_.warmup.count());
    if (arbitration_) next = std::min(next, arbitration_->next_look());
    if (account_) next = std::min(next, account_->NextEvent(now_, serving_use_ + training_use_));
    for (const Stream& run : serving_.runs()) next = std::min(next, run.StepEnds(now_));
    for (const Stream& trainer : training_.streams()) next = std::min(next, trainer.StepEnds(now_));
    return next;
  }

  void Advance(Time to) {
    const auto time = static_cast<double>(to - now_);
    for (Stream& run : serving_.runs()) run.Advance(time);
    for (Stream& trainer : training_.streams()) trainer.Advance(time);
    served_ += serving_use_ * time;
    trained_ += training_use_ * time;
    if (account_) account_->Use((serving_use_ + training_use_) * time);
    if (arbitration_) {
      const ColocationDecision& decision = arbitration_->decision();
      training_.Held(to - now_, decision.hold ? decision.hold : decision.hold_heavy);
    }
    now_ = to;
    clock_.Set(now_);
  }

  void Mark() {
    marked_ = true;
    training_.Mark();
    served_before_ = served_;
    trained_before_ = trained_;
    if (account_) account_before_ = account_->use();
  }

  // But for the requests, some of which may be answered later.
  SimulationResult Counted() {
    SimulationResult result{.models = {}, .trainers = training_.Finish(scenario_.duration)};
    result.time = scenario_.duration;
    result.capacity = account_ ? account_->limit().cores() : scenario_.machine.width;
    result.used_by_requests = (served_ - served_before_) / 1e9;
    result.used_by_training = (trained_ - trained_before_) / 1e9;
    if (account_) {
      result.most_used_in_a_period = account_->most_used() / 1e9;
      result.periods = account_->use().periods - account_before_.periods;
      result.throttled_periods = account_->use().throttled - account_before_.throttled;
    }
    return result;
  }

  // Constant after construction.
  const Scenario& scenario_;
  const Time end_;
  const std::unique_ptr<const Device> device_;

  EventClock clock_;
  Time now_ = 0;
  Serving serving_;
  Training training_;
  std::optional<CpuAccount> account_;
  std::optional<Arbitration> arbitration_;  // Nullopt: there is nobody to hold.
  std::uint64_t order_ = 1'000'000;         // Above those that streams begin with.
  std::uint64_t events_ = 0;
  // In use just now, and since the beginning: cores or SMs, and nanoseconds of them.
  double serving_use_ = 0;
  double training_use_ = 0;
  double served_ = 0;
  double trained_ = 0;
  // When what counts began.
  bool marked_ = false;
  double served_before_ = 0;
  double trained_before_ = 0;
  CpuUse account_before_;
};

}  // namespace

SimulationResult Simulate(const Scenario& scenario, const ColocationPolicy& policy) {
  return Run(scenario, policy).Go();
}

}  // namespace tandem::simulation
