#include "runtimes/training/trainer/learner.h"

#include <new>
#include <set>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <fnmatch.h>

#include "runtimes/training/graph/fixed_inputs.h"
#include "runtimes/training/graph/free_batch.h"
#include "runtimes/training/graph/fuse_nodes.h"
#include "runtimes/training/graph/model_file.h"
#include "runtimes/training/graph/replace_head.h"
#include "runtimes/training/ops/torch_error.h"

namespace tandem::training {
namespace {

constexpr const char* kRandomState = "random";
constexpr std::string_view kWeightPrefix = "weight/";
constexpr std::string_view kOptimizerPrefix = "optimizer/";

Result<onnx::ModelProto> LoadForJob(const TrainingJob& job, const std::filesystem::path& file) {
  TANDEM_ASSIGN(onnx::ModelProto model, LoadModel(file));
  GiveFixedInputsTheirOwn(*model.mutable_graph());
  if (job.replace_head) TANDEM_TRY(ReplaceHead(*job.replace_head, job.seed, model));
  return model;
}

std::optional<std::vector<std::int64_t>> OutputShape(const onnx::GraphProto& graph, const std::string& output) {
  for (const auto& info : graph.output()) {
    if (info.name() != output && !output.empty()) continue;
    const auto& type = info.type().tensor_type();
    if (!type.has_shape() || type.shape().dim_size() == 0) return std::nullopt;
    std::vector<std::int64_t> shape;
    for (int i = 1; i < type.shape().dim_size(); ++i) {
      const auto& size = type.shape().dim(i);
      shape.push_back(size.has_dim_value() && size.dim_value() > 0 ? size.dim_value() : -1);
    }
    return shape;
  }
  return std::nullopt;
}

// The one that ATen's operators use unless they are told otherwise.
at::Generator RandomNumbers() {
  return at::detail::getDefaultCPUGenerator();
}

// What ATen throws outside of a program's nodes.
template <typename Work>
auto Guarded(const char* what, Work work) -> Result<decltype(work())> {
  try {
    return work();
  } catch (const c10::Error& error) {
    return std::unexpected(TorchError(what, error));
  } catch (const std::bad_alloc&) {
    return std::unexpected(OutOfMemory(what));
  }
}

}  // namespace

Result<std::unique_ptr<Learner>> Learner::Load(const TrainingJob& job, const std::filesystem::path& file, OpGate& gate,
                                               Substance substance) {
  std::unique_ptr<Learner> learner(new Learner(job));
  TANDEM_ASSIGN(onnx::ModelProto model, LoadForJob(job, file));
  FreeBatchDimension(*model.mutable_graph());
  TANDEM_ASSIGN(const TrainedValue value, FindTrainedValue(model.graph(), job.output, job.loss.kind));
  learner->form_ = value.form;
  learner->output_shape_ = OutputShape(model.graph(), job.output);
  FuseNodes({value.name}, *model.mutable_graph());
  TANDEM_ASSIGN(learner->program_, Program::Compile(model, {value.name}, AllOps()));
  if (substance == Substance::kHollow) learner->program_->MakeHollow();
  TANDEM_TRY(learner->ChooseParameters());
  learner->optimizer_ = std::make_unique<Optimizer>(job.optimizer, learner->parameters_);
  learner->gate_ = std::make_unique<StepGate>(learner->program_->ops(), "update", gate);
  RandomNumbers().set_current_seed(job.seed);
  return learner;
}

Status Learner::ChooseParameters() {
  std::set<std::string> unused(job_.trainable.begin(), job_.trainable.end());
  for (const auto& [name, weight] : program_->weights()) {
    bool chosen = job_.trainable.empty() && weight.trainable;
    for (const std::string& pattern : job_.trainable) {
      if (fnmatch(pattern.c_str(), name.c_str(), 0) != 0) continue;
      unused.erase(pattern);
      chosen = weight.trainable;
    }
    if (chosen) {
      weight.tensor.set_requires_grad(true);
      parameters_.emplace(name, weight.tensor);
    }
    const bool updated = job_.update_batch_norm && weight.statistic;
    if (updated && weight.shared) {
      return Fail(ErrorCode::kUnsupported,
                  "/update_batch_norm: '{}' is the running statistic of several places at once and cannot follow each; "
                  "leave it false, or export the model with a tensor for each",
                  name);
    }
    if (chosen || updated) changing_.emplace(name, weight.tensor);
  }
  if (!unused.empty()) return Invalid("/trainable: no weight of the model is like '{}'", *unused.begin());
  if (parameters_.empty()) return Invalid("the model has no weight that could be trained");
  return {};
}

void Learner::Follow(const FitPlan& plan) {
  recomputer_ = plan.segments.empty() ? nullptr : std::make_unique<Recomputer>(*program_, plan, *gate_);
}

Result<Tensors> Learner::Answer(const Examples& batch) {
  const RunMode mode{.training = true, .update_batch_norm = job_.update_batch_norm, .random = RandomNumbers()};
  if (!recomputer_) return program_->Run(mode, batch.inputs, *gate_);
  recomputer_->BeginRun(mode);
  const SavedTensorScope scope(*recomputer_);
  return program_->Run(mode, batch.inputs, *gate_, recomputer_.get());
}

Result<double> Learner::Accumulate(const Examples& batch, std::int64_t share) {
  TANDEM_ASSIGN(Tensors outputs, Answer(batch));
  return Guarded("the loss and its gradients", [&] {
    gate_->BeginLoss();
    at::Tensor loss = ComputeLoss(job_.loss, form_, outputs[0], batch.target);
    outputs.clear();
    const GradientScope gradients(*gate_);
    (share == 1 ? loss : loss / static_cast<double>(share)).backward();
    return loss.is_meta() ? 0 : loss.item<double>();
  });
}

NamedTensors Learner::Unsettled() const {
  const at::NoGradGuard no_gradients;
  NamedTensors unsettled{{kRandomState, RandomNumbers().get_state()}};
  for (const auto& [name, tensor] : changing_) {
    if (!parameters_.contains(name)) unsettled.emplace(std::string(kWeightPrefix) + name, tensor.detach().clone());
  }
  return unsettled;
}

void Learner::Drop(const NamedTensors& unsettled) {
  const at::NoGradGuard no_gradients;
  optimizer_->ClearGradients();
  RandomNumbers().set_state(unsettled.at(kRandomState));
  for (const auto& [name, tensor] : changing_) {
    if (!parameters_.contains(name)) at::Tensor(tensor).detach().copy_(unsettled.at(std::string(kWeightPrefix) + name));
  }
}

void Learner::Step(double learning_rate, double clip_norm) {
  gate_->BeginUpdate();
  if (clip_norm > 0) optimizer_->ClipGradients(clip_norm);
  optimizer_->Step(learning_rate, [&] { gate_->BeginUpdate(); });
  optimizer_->ClearGradients();
  gate_->End();
}

Result<Score> Learner::Evaluate(const Examples& batch) {
  const at::NoGradGuard no_gradients;
  TANDEM_ASSIGN(const Tensors outputs, program_->Run(RunMode{}, batch.inputs, *gate_));
  return Guarded("the evaluation", [&] {
    Score score{.loss = ComputeLoss(job_.loss, form_, outputs[0], batch.target).item<double>(),
                .right = 0,
                .targets = batch.target.numel()};
    if (HasAccuracy(job_.loss.kind)) score.right = CountRight(job_.loss.kind, outputs[0], batch.target);
    return score;
  });
}

std::int64_t Learner::model_parameters() const {
  std::int64_t numbers = 0;
  for (const auto& [name, weight] : program_->weights()) {
    if (weight.tensor.is_floating_point()) numbers += weight.tensor.numel();
  }
  return numbers;
}

NamedTensors Learner::Weights() const {
  const at::NoGradGuard no_gradients;
  NamedTensors weights;
  for (const auto& [name, tensor] : changing_) weights.emplace(name, tensor.detach().clone());
  return weights;
}

NamedTensors Learner::Snapshot() const {
  const at::NoGradGuard no_gradients;
  NamedTensors snapshot;
  for (const auto& [name, tensor] : Weights()) snapshot.emplace(std::string(kWeightPrefix) + name, tensor);
  for (const auto& [name, tensor] : optimizer_->State()) {
    snapshot.emplace(std::string(kOptimizerPrefix) + name, tensor.clone());
  }
  snapshot.emplace(kRandomState, RandomNumbers().get_state());
  return snapshot;
}

Status Learner::Restore(const NamedTensors& snapshot) {
  const at::NoGradGuard no_gradients;
  NamedTensors optimizer;
  for (const auto& [name, tensor] : snapshot) {
    if (name.starts_with(kOptimizerPrefix)) optimizer.emplace(name.substr(kOptimizerPrefix.size()), tensor);
  }
  for (const auto& [name, tensor] : changing_) {
    const auto found = snapshot.find(std::string(kWeightPrefix) + name);
    if (found == snapshot.end()) return Invalid("the checkpoint lacks the weight '{}'", name);
    if (found->second.sizes() != tensor.sizes() || found->second.scalar_type() != tensor.scalar_type()) {
      return Invalid("the weight '{}' of the checkpoint has another shape or type", name);
    }
    at::Tensor(tensor).detach().copy_(found->second);
  }
  TANDEM_TRY(optimizer_->Restore(optimizer));
  const auto random = snapshot.find(kRandomState);
  if (random == snapshot.end()) return Invalid("the checkpoint lacks the state of the random numbers");
  TANDEM_TRY(Guarded("the random numbers of the checkpoint", [&] {
    RandomNumbers().set_state(random->second);
    return true;
  }));
  return {};
}

Result<onnx::ModelProto> ModelWithWeights(const TrainingJob& job, const std::filesystem::path& file,
                                          const NamedTensors& weights) {
  TANDEM_ASSIGN(onnx::ModelProto model, LoadForJob(job, file));
  TANDEM_TRY(PutWeights(weights, model));
  return model;
}

}  // namespace tandem::training
