#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/base/clock.h"
#include "api/base/op_gate.h"
#include "api/base/result.h"
#include "api/base/training_job.h"
#include "api/base/training_memory.h"
#include "runtimes/training/checkpoint/checkpointer.h"
#include "runtimes/training/data/batch_stream.h"
#include "runtimes/training/data/example_source.h"
#include "runtimes/training/trainer/learner.h"
#include "runtimes/training/trainer/progress_text.h"
#include "runtimes/training/trainer/step_memory.h"

namespace tandem::training {

// Where a run finds what it needs, and leaves what it makes.
struct TrainerPaths {
  std::filesystem::path model;      // The ONNX file that is trained from.
  std::filesystem::path folder;     // Of the job: checkpoints, and in the end the model.
  std::filesystem::path data_root;  // Data lies under it.
  std::int64_t job = 0;             // Its number: what the written model says of its origin.
};

// What is told of a run as it goes. Called on the training thread, but for OnCheckpoint, which is called on the one
// that writes.
class TrainerListener {
 public:
  virtual ~TrainerListener() = default;
  struct Plan {
    std::int64_t first_step = 0;  // Larger than 0 when it goes on from a checkpoint.
    std::int64_t total_steps = 0;
    std::int64_t examples = 0;
    std::int64_t evaluation_examples = 0;
    std::int64_t parameters = 0;        // Numbers that are trained.
    std::int64_t model_parameters = 0;  // With those that are not.
  };
  struct Step {
    std::int64_t step = 0;  // Steps done.
    std::int64_t epoch = 0;
    double loss = 0;
    double learning_rate = 0;
  };
  struct Evaluation {
    std::int64_t step = 0;
    double loss = 0;
    std::optional<double> accuracy;
    bool best = false;
  };
  virtual void OnPlan(const Plan& plan) = 0;
  virtual void OnStep(const Step& step) = 0;
  virtual void OnEvaluation(const Evaluation& evaluation) = 0;
  // What it takes of memory; once, after its first steps, where that can be measured.
  virtual void OnMemory(const MemoryUse& /*use*/) {}
  virtual void OnCheckpoint(const SavedCheckpoint& saved) = 0;
  // A checkpoint that could not be read and was passed over.
  virtual void OnSkippedCheckpoint(const std::filesystem::path& file, const Error& why) = 0;
};

enum class TrainingEnd { kFinished, kStoppedEarly, kInterrupted };

// One training run, from its last good checkpoint or the beginning to the end. Training thread only, but for the flag
// that interrupts it.
class Trainer {
 public:
  // Opens the model, the data and the last good checkpoint. `gate`, `listener` and `clock` outlive it. By the plan it
  // holds less than what gradients need.
  [[nodiscard]] static Result<std::unique_ptr<Trainer>> Prepare(const TrainingJob& job, TrainerPaths paths,
                                                                OpGate& gate, TrainerListener& listener,
                                                                const Clock& clock, const FitPlan& plan = {});
  ~Trainer();

  // Trains. When `interrupt` becomes true it writes a checkpoint after the step and returns kInterrupted. Otherwise the
  // model is written to ResultFile(). An error leaves the last good checkpoint.
  [[nodiscard]] Result<TrainingEnd> Run(const std::atomic<bool>& interrupt);

  // Evaluates the model as it is: progress().baseline. kInvalidArgument when the job has no evaluation.
  [[nodiscard]] Status Measure();

  // Steps done, and what was measured before the first and at its best, if anything was: accuracy, else the loss.
  [[nodiscard]] const TrainingProgress& progress() const { return progress_; }

  [[nodiscard]] static std::filesystem::path ResultFile(const TrainerPaths& paths) {
    return paths.folder / "model.onnx";
  }

 private:
  Trainer(const TrainingJob& job, TrainerPaths paths, OpGate& gate, TrainerListener& listener, const Clock& clock);
  [[nodiscard]] Status OpenData();
  // Goes back to the last good checkpoint, if there is one.
  [[nodiscard]] Status Resume();
  [[nodiscard]] StreamOptions TrainingBatches() const;
  [[nodiscard]] bool Evaluates() const;
  [[nodiscard]] Status TrainStep();
  // The loss of a step whose gradients are there then; nothing in the lane but these.
  [[nodiscard]] Result<double> ComputeGradients();
  // Waits for the turn; false: no iteration is to begin any more. Nothing of the last one is left in the lane.
  [[nodiscard]] Result<bool> BeginIteration();
  // The lane is too short for an iteration, and cannot grow: tells what would be enough. What is lost is what was
  // computed since the last checkpoint, which is written if `settled`.
  TrainingEnd LeaveForMore(std::uint64_t needed, bool settled);
  [[nodiscard]] Status Evaluate();
  // Whether `metric` is better than the best so far.
  [[nodiscard]] bool IsBetter(double metric) const;
  [[nodiscard]] bool EvaluationDue() const;
  [[nodiscard]] bool CheckpointDue() const;
  void SaveCheckpoint();
  [[nodiscard]] Status WriteResult();
  [[nodiscard]] std::filesystem::path BestFile() const { return paths_.folder / "best.weights"; }

  // Constant after Prepare.
  const TrainingJob job_;
  const TrainerPaths paths_;
  OpGate& gate_;
  TrainerListener& listener_;
  const Clock& clock_;
  std::unique_ptr<Learner> learner_;
  std::unique_ptr<ExampleSource> source_;
  std::unique_ptr<ExampleSource> evaluation_source_;
  std::int64_t total_steps_ = 0;
  std::int64_t steps_per_epoch_ = 0;

  std::unique_ptr<BatchStream> stream_;
  StepMemory memory_;
  std::optional<std::uint64_t> outgrown_;  // What an iteration would have needed in its lane.
  TrainingProgress progress_;
  MonotonicTime last_checkpoint_;
  std::int64_t last_checkpoint_step_ = 0;
  std::unique_ptr<Checkpointer> checkpointer_;
};

}  // namespace tandem::training
