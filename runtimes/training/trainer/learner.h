#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "api/base/op_gate.h"
#include "api/base/result.h"
#include "api/base/training_job.h"
#include "runtimes/training/fit/fit_plan.h"
#include "runtimes/training/fit/recomputer.h"
#include "runtimes/training/graph/program.h"
#include "runtimes/training/learning/objective.h"
#include "runtimes/training/learning/optimizer.h"
#include "runtimes/training/trainer/step_gate.h"

namespace tandem::training {

// One batch in ATen's form.
struct Examples {
  Tensors inputs;  // In the order of the model's.
  at::Tensor target;
  std::int64_t size = 0;
};

struct Score {
  double loss = 0;         // Mean over the examples.
  std::int64_t right = 0;  // Targets told rightly; 0 when the loss knows no such thing.
  std::int64_t targets = 0;
};

// Whether tensors have memory. Without it nothing is computed; but a step is gone through as it would be, tensor by
// tensor.
enum class Substance { kReal, kHollow };

// A model that learns: its program, what of it is trained, the loss and the optimizer. Knows nothing of files, time or
// jobs but the model that it is made from. Training thread only.
class Learner {
 public:
  // Reads the model as the job wants it trained. Errors name what of the job or the model is wrong.
  [[nodiscard]] static Result<std::unique_ptr<Learner>> Load(const TrainingJob& job, const std::filesystem::path& model,
                                                             OpGate& gate, Substance substance = Substance::kReal);

  [[nodiscard]] const std::vector<ProgramInput>& inputs() const { return program_->inputs(); }
  [[nodiscard]] const NamedTensors& parameters() const { return parameters_; }
  // Floating-point numbers in its weights, trained or not.
  [[nodiscard]] std::int64_t model_parameters() const;
  // What the model says of one example's trained output: without the batch, -1 where a dimension is free; nullopt when
  // it says nothing.
  [[nodiscard]] const std::optional<std::vector<std::int64_t>>& output_shape() const { return output_shape_; }

  // Bytes of what the graph computes with and does not compute from its inputs, trained or not.
  [[nodiscard]] std::uint64_t constant_bytes() const { return program_->constant_bytes(); }

  // How steps hold what their gradients need, from the next on; without a plan all is held. Plans are of program().
  void Follow(const FitPlan& plan);
  [[nodiscard]] const Program& program() const { return *program_; }

  // Adds the gradients of a batch, as one of `share` that make up a step; the mean loss of the batch, 0 for a hollow
  // one.
  [[nodiscard]] Result<double> Accumulate(const Examples& batch, std::int64_t share);
  // What a step changes before its parameters are: random numbers, running statistics.
  [[nodiscard]] NamedTensors Unsettled() const;
  // Forgets what was accumulated, and goes back to what was unsettled when it began: as if the step had never begun.
  void Drop(const NamedTensors& unsettled);
  // Changes the parameters by what was accumulated.
  void Step(double learning_rate, double clip_norm);
  // Computes without learning.
  [[nodiscard]] Result<Score> Evaluate(const Examples& batch);

  // What changes while it learns: weights (running statistics included), the optimizer's state and that of the random
  // numbers. Copies.
  [[nodiscard]] NamedTensors Snapshot() const;
  // The weights alone. Copies.
  [[nodiscard]] NamedTensors Weights() const;
  // Takes over a snapshot of the same job; kInvalidArgument names what does not fit, and nothing is trained with it.
  [[nodiscard]] Status Restore(const NamedTensors& snapshot);

 private:
  explicit Learner(const TrainingJob& job) : job_(job) {}
  [[nodiscard]] Status ChooseParameters();
  // What the program says of a batch that is learnt from.
  [[nodiscard]] Result<Tensors> Answer(const Examples& batch);

  // Constant after Load.
  const TrainingJob job_;
  std::unique_ptr<Program> program_;
  std::unique_ptr<StepGate> gate_;
  OutputForm form_ = OutputForm::kPlain;
  std::optional<std::vector<std::int64_t>> output_shape_;
  NamedTensors parameters_;  // What is trained.
  NamedTensors changing_;    // Parameters and running statistics.
  std::unique_ptr<Optimizer> optimizer_;

  std::unique_ptr<Recomputer> recomputer_;  // Null: all is held.
};

// The model as it is saved, in the file's form: the job's new head, if it has one, and the weights.
[[nodiscard]] Result<onnx::ModelProto> ModelWithWeights(const TrainingJob& job, const std::filesystem::path& model,
                                                        const NamedTensors& weights);

}  // namespace tandem::training
