#include "bench/training/memory_side.h"

#include <atomic>
#include <cstdio>
#include <optional>

#include <ATen/Parallel.h>

#include "api/base/clock.h"
#include "api/base/format.h"
#include "api/base/op_gate.h"
#include "api/wire/json_text.h"
#include "bench/training/network_job.h"
#include "runtimes/training/estimate/memory_estimator.h"
#include "runtimes/training/trainer/trainer.h"
#include "runtimes/training/trainer/training_heap.h"

namespace tandem::bench {
namespace {

class MemoryListener final : public training::TrainerListener, public OpGate {
 public:
  void OnPlan(const Plan&) override {}
  void OnStep(const Step&) override {}
  void OnEvaluation(const Evaluation&) override {}
  void OnCheckpoint(const training::SavedCheckpoint&) override {}
  void OnSkippedCheckpoint(const std::filesystem::path&, const Error&) override {}
  void OnMemory(const MemoryUse& one) override { use = one; }
  void Begin(std::size_t) override {}

  std::optional<MemoryUse> use;
};

TrainingJob JobOf(const MemorySetup& setup) {
  TrainingJob job = NetworkJob({.name = "estimated", .example = {}, .classes = setup.classes}, setup.batch);
  job.data = {.kind = DataKind::kSynthetic, .samples = setup.batch, .classes = setup.classes};
  job.optimizer.kind = setup.optimizer;
  if (setup.optimizer == OptimizerKind::kSgd) {
    constexpr double kMomentum = 0.9;
    job.optimizer.momentum = kMomentum;
  }
  constexpr double kHarmless = 1e-6;  // Random weights and examples: a larger one might leave the finite numbers.
  job.optimizer.learning_rate = kHarmless;
  job.steps = 2;
  return job;
}

}  // namespace

Status CompareMemory(const MemorySetup& setup) {
  training::KeepFreedMemory();
  at::set_num_threads(setup.threads);
  const TrainingJob job = JobOf(setup);
  const Clock& clock = RealClock::Instance();
  const MonotonicTime began = clock.Now();
  TANDEM_ASSIGN(const MemoryEstimate estimate, training::EstimateMemory(job, setup.model, {}));
  const std::chrono::duration<double> took = clock.Now() - began;
  training::DropFreedMemory();
  MemoryListener listener;
  TANDEM_ASSIGN(const auto trainer,
                training::Trainer::Prepare(job, {.model = setup.model, .folder = setup.folder, .data_root = {}},
                                           listener, listener, clock));
  const std::atomic<bool> never{false};
  TANDEM_TRY(trainer->Run(never));
  if (!listener.use) return Fail(ErrorCode::kInternal, "nothing was measured");
  const PersistentBytes& parts = estimate.persistent;
  std::puts(Format(R"({{"persistent":{{"estimate":{},"measured":{},"weights":{},"optimizer":{},"data":{},)"
                   R"("framework":{}}},"ephemeral":{{"estimate":{},"measured":{},"peak":{}}},"seconds":{:.3f}}})",
                   parts.total(), listener.use->persistent, parts.weights, parts.optimizer, parts.data, parts.framework,
                   estimate.ephemeral, listener.use->ephemeral, JsonString(estimate.peak), took.count())
                .c_str());
  return {};
}

}  // namespace tandem::bench
