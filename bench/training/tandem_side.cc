#include <atomic>

#include <ATen/Parallel.h>

#include "bench/training/network_job.h"
#include "bench/training/sides.h"
#include "colocation/board_gate.h"
#include "colocation/trainer_board.h"
#include "runtimes/training/trainer/trainer.h"
#include "runtimes/training/trainer/training_heap.h"

namespace tandem::bench {
namespace {

class TurnListener : public training::TrainerListener, public OpGate {
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

 protected:
  [[nodiscard]] const Turns& turns() const { return turns_; }

 private:
  Turns& turns_;
  std::atomic<bool> enough_{false};
  std::atomic<bool> problem_{false};
};

// Asks a board, as a trainer does, in every second turn, and nobody in the others.
class GatedListener final : public TurnListener {
 public:
  GatedListener(Turns& turns, TrainerBoard& board)
      : TurnListener(turns), gate_(board, RealClock::Instance(), [](int, int) {}) {}

  void Announce(std::span<const OpInfo> ops) override { gate_.Announce(ops); }
  void Begin(std::size_t op) override {
    if (on()) gate_.Begin(op);
  }
  void End() override {
    if (on()) gate_.End();
  }
  void Describe(std::size_t op, const OpWork& work) override { gate_.Describe(op, work); }

 private:
  [[nodiscard]] bool on() const { return turns().number() % 2 == 0; }

  BoardGate gate_;
};

Status Train(const TrainingSetup& setup, TurnListener& listener) {
  training::KeepFreedMemory();
  at::set_num_threads(setup.threads);
  TrainingJob job = NetworkJob(setup.network, setup.batch);
  job.checkpoint.every_steps = setup.checkpoint_steps;
  TANDEM_ASSIGN(const auto trainer,
                training::Trainer::Prepare(
                    job, {.model = setup.folder / kModelFile, .folder = setup.folder, .data_root = setup.folder},
                    listener, listener, RealClock::Instance()));
  TANDEM_TRY(trainer->Run(listener.enough()));
  if (listener.problem()) return Fail(ErrorCode::kInternal, "a checkpoint could not be written");
  return {};
}

}  // namespace

Status TrainWithTandem(const TrainingSetup& setup, Turns& turns) {
  TurnListener listener(turns);
  return Train(setup, listener);
}

Status TrainWithTandemGated(const TrainingSetup& setup, Turns& turns) {
  TANDEM_ASSIGN(const auto board, TrainerBoard::Create());
  GatedListener listener(turns, *board);
  return Train(setup, listener);
}

}  // namespace tandem::bench
