#include <atomic>

#include <ATen/Parallel.h>

#include "bench/training/network_job.h"
#include "bench/training/sides.h"
#include "runtimes/training/trainer/trainer.h"
#include "runtimes/training/trainer/training_heap.h"

namespace tandem::bench {
namespace {

class TurnListener final : public training::TrainerListener, public OpGate {
 public:
  explicit TurnListener(Turns& turns) : turns_(turns) {}

  void OnPlan(const Plan&) override {}
  void OnStep(const Step&) override {
    if (!turns_.StepDone()) enough_ = true;
  }
  void OnEvaluation(const Evaluation&) override {}
  void OnCheckpoint(const training::SavedCheckpoint& saved) override {
    if (!saved.size) problem_ = true;
  }
  void OnSkippedCheckpoint(const std::filesystem::path&, const Error&) override {}
  void Begin(std::size_t) override { turns_.OpBegins(); }

  [[nodiscard]] const std::atomic<bool>& enough() const { return enough_; }
  [[nodiscard]] bool problem() const { return problem_; }

 private:
  Turns& turns_;
  std::atomic<bool> enough_{false};
  std::atomic<bool> problem_{false};
};

}  // namespace

Status TrainWithTandem(const TrainingSetup& setup, Turns& turns) {
  training::KeepFreedMemory();
  at::set_num_threads(setup.threads);
  TrainingJob job = NetworkJob(setup.network, setup.batch);
  job.checkpoint.every_steps = setup.checkpoint_steps;
  TurnListener listener(turns);
  TANDEM_ASSIGN(const auto trainer,
                training::Trainer::Prepare(
                    job, {.model = setup.folder / kModelFile, .folder = setup.folder, .data_root = setup.folder},
                    listener, listener, RealClock::Instance()));
  TANDEM_TRY(trainer->Run(listener.enough()));
  if (listener.problem()) return Fail(ErrorCode::kInternal, "a checkpoint could not be written");
  return {};
}

}  // namespace tandem::bench
