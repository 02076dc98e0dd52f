#include "colocation/simulation/training.h"

#include <algorithm>

#include "api/base/duration.h"
#include "colocation/simulation/thread_rules.h"

namespace tandem::simulation {
namespace {

std::vector<Step> Joined(const std::vector<Step>& steps) {
  std::vector<Step> joined;
  for (const Step& step : steps) {
    if (!joined.empty() && joined.back().width == step.width) {
      joined.back().time += step.time;
    } else {
      joined.push_back(step);
    }
  }
  return joined;
}

}  // namespace

Training::Training(const Scenario& scenario, int threads, bool steps_matter)
    : scenario_(scenario), plans_(scenario.trainers.size()), streams_(scenario.trainers.size()) {
  const bool join = scenario.machine.kind == DeviceKind::kCpu && !steps_matter;
  for (std::size_t i = 0; i < plans_.size(); ++i) {
    Plan& plan = plans_[i];
    const Trainer& trainer = scenario.trainers[i];
    for (int count = steps_matter ? 1 : std::max(threads, 1); count <= std::max(threads, 1); ++count) {
      plan.by_threads.push_back(OnThreads(scenario.machine, trainer.steps, count, trainer.speedup));
    }
    if (join) plan.by_threads.back() = Joined(plan.by_threads.back());
    for (const Step& step : plan.by_threads.back()) {
      plan.before.push_back(plan.whole);
      plan.whole += static_cast<double>(step.time.count());
    }
    streams_[i].Load(plan.by_threads.back(), 1, i);
    streams_[i].lockstep = trainer.lockstep;
  }
}

void Training::StepsDone(int threads, std::uint64_t& order) {
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    Stream& stream = streams_[i];
    if (!stream.StepDone()) continue;
    const bool last = stream.at + 1 == stream.steps.size();
    if (last) ++plans_[i].iterations;
    const auto& variants = plans_[i].by_threads;
    stream.steps = threads > 0 ? variants[std::min<std::size_t>(static_cast<std::size_t>(threads), variants.size()) - 1]
                               : variants.back();
    stream.GoTo(last ? 0 : stream.at + 1, order++);
  }
}

void Training::Held(Time time, std::optional<HoldReason> reason) {
  if (!reason) return;
  const auto place = static_cast<std::size_t>(std::ranges::find(kHoldReasons, *reason) - kHoldReasons.begin());
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    if (streams_[i].blocked) plans_[i].held[place] += std::chrono::nanoseconds(time);
  }
}

double Training::Progress(std::size_t trainer) const {
  const Plan& plan = plans_[trainer];
  const Stream& stream = streams_[trainer];
  const double part = 1 - stream.left / std::max(1.0, static_cast<double>(stream.step().time.count()));
  const double done =
      plan.before[stream.at] + part * static_cast<double>(plan.by_threads.back()[stream.at].time.count());
  return static_cast<double>(plan.iterations) + done / plan.whole;
}

void Training::Mark() {
  for (std::size_t i = 0; i < plans_.size(); ++i) {
    plans_[i].marked = Progress(i);
    plans_[i].held = {};
  }
}

std::vector<TrainerResult> Training::Finish(std::chrono::nanoseconds time) const {
  std::vector<TrainerResult> results;
  for (std::size_t i = 0; i < plans_.size(); ++i) {
    results.push_back({.name = scenario_.trainers[i].name,
                       .iterations_per_second = (Progress(i) - plans_[i].marked) / Seconds(time),
                       .held = plans_[i].held});
  }
  return results;
}

}  // namespace tandem::simulation
