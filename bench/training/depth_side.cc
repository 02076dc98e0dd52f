#include "bench/training/depth_side.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <optional>
#include <vector>

#include <ATen/Parallel.h>

#include "api/base/clock.h"
#include "api/base/format.h"
#include "api/base/op_gate.h"
#include "bench/training/network_job.h"
#include "runtimes/training/estimate/memory_estimator.h"
#include "runtimes/training/trainer/trainer.h"
#include "runtimes/training/trainer/training_heap.h"

namespace tandem::bench {
namespace {

// The first makes the optimizer's state, and the second what was given back after it.
constexpr std::size_t kNotMeasured = 2;

class StepTimes final : public training::TrainerListener, public OpGate {
 public:
  explicit StepTimes(const Clock& clock) : clock_(clock) {}
  void OnPlan(const Plan&) override {}
  void OnStep(const Step&) override { ends_.push_back(clock_.Now()); }
  void OnEvaluation(const Evaluation&) override {}
  void OnCheckpoint(const training::SavedCheckpoint&) override {}
  void OnSkippedCheckpoint(const std::filesystem::path&, const Error&) override {}
  void OnMemory(const MemoryUse& one) override { use = one; }
  void Begin(std::size_t) override {}

  // The middle one.
  [[nodiscard]] double Seconds() const {
    std::vector<double> seconds;
    for (std::size_t i = kNotMeasured; i < ends_.size(); ++i) {
      seconds.push_back(std::chrono::duration<double>(ends_[i] - ends_[i - 1]).count());
    }
    std::ranges::sort(seconds);
    return seconds.empty() ? 0 : seconds[seconds.size() / 2];
  }

  std::optional<MemoryUse> use;

 private:
  const Clock& clock_;
  std::vector<MonotonicTime> ends_;
};

TrainingJob JobOf(const DepthSetup& setup) {
  TrainingJob job = NetworkJob({.name = "deep", .example = {}, .classes = setup.classes}, setup.batch);
  job.data = {.kind = DataKind::kSynthetic, .samples = 2 * setup.batch, .classes = setup.classes};
  constexpr double kMomentum = 0.9;
  constexpr double kHarmless = 1e-6;  // Random weights and examples: a larger one might leave the finite numbers.
  job.optimizer = {.kind = OptimizerKind::kSgd, .learning_rate = kHarmless, .momentum = kMomentum};
  job.steps = setup.steps;
  if (setup.bound > 0) {
    job.memory = setup.bound;
    job.fit = true;
  }
  return job;
}

}  // namespace

Status TrainDeep(const DepthSetup& setup) {
  training::KeepFreedMemory();
  at::set_num_threads(setup.threads);
  const TrainingJob job = JobOf(setup);
  const Clock& clock = RealClock::Instance();
  const MonotonicTime began = clock.Now();
  TANDEM_ASSIGN(const training::FittedJob fitted, training::FitMemory(job, setup.model, {}));
  const std::chrono::duration<double> planned = clock.Now() - began;
  training::DropFreedMemory();
  StepTimes times(clock);
  TANDEM_ASSIGN(const auto trainer,
                training::Trainer::Prepare(job, {.model = setup.model, .folder = setup.folder, .data_root = {}}, times,
                                           times, clock, fitted.plan));
  const std::atomic<bool> never{false};
  TANDEM_TRY(trainer->Run(never));
  const double slowdown = fitted.memory.fit ? fitted.memory.fit->slowdown : 0;
  std::puts(Format(R"({{"step":{:.6f},"plan":{:.6f},"slowdown":{:.6f},"persistent":{},"ephemeral":{},)"
                   R"("measured_persistent":{},"measured_ephemeral":{}}})",
                   times.Seconds(), planned.count(), slowdown, fitted.memory.persistent.total(),
                   fitted.memory.ephemeral, times.use ? times.use->persistent : 0, times.use ? times.use->ephemeral : 0)
                .c_str());
  return {};
}

}  // namespace tandem::bench
