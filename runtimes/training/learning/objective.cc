#include "runtimes/training/learning/objective.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "runtimes/training/graph/graph_search.h"

namespace tandem::training {
namespace {

// Below it a logarithm is no longer finite in single precision.
constexpr double kLeastProbability = 1e-12;

// Over the classes, which are the second dimension. Before opset 13 a softmax without an axis has that one, too; from
// then on it has the last, which is the second for what has two.
bool IsOverClasses(const onnx::NodeProto& softmax) {
  const auto axis = std::ranges::find(softmax.attribute(), "axis", &onnx::AttributeProto::name);
  return axis == softmax.attribute().end() || axis->i() == 1 || axis->i() == -1;
}

at::Tensor ClassRows(const at::Tensor& value) {
  at::Tensor rows = value;
  while (rows.dim() > 2 && rows.size(-1) == 1) rows = rows.squeeze(-1);
  TORCH_CHECK(rows.dim() == 2, "the trained output has ", rows.dim(),
              " dimensions; a cross-entropy takes two: the batch and the classes");
  return rows;
}

at::Tensor ClassLoss(const LossSpec& loss, OutputForm form, const at::Tensor& value, const at::Tensor& target) {
  const at::Tensor rows = ClassRows(value);
  const at::Tensor logits = form == OutputForm::kProbabilities ? rows.clamp_min(kLeastProbability).log() : rows;
  return at::cross_entropy_loss(logits, target, {}, at::Reduction::Mean, /*ignore_index=*/-100, loss.label_smoothing);
}

at::Tensor Like(const at::Tensor& target, const at::Tensor& value) {
  TORCH_CHECK(target.numel() == value.numel(), "the trained output has ", value.numel(), " elements and the target ",
              target.numel());
  return target.reshape(value.sizes()).to(value.scalar_type());
}

}  // namespace

Result<TrainedValue> FindTrainedValue(const onnx::GraphProto& graph, const std::string& output, LossKind loss) {
  if (graph.output_size() == 0) return Invalid("the model has no output");
  const std::string& name = output.empty() ? graph.output(0).name() : output;
  if (!std::ranges::contains(graph.output(), name, &onnx::ValueInfoProto::name)) {
    return Invalid("the model has no output '{}'", name);
  }
  const onnx::NodeProto* maker = MakerOf(graph, name);
  if (maker == nullptr || maker->input_size() == 0) return TrainedValue{.name = name};
  const std::string& op = maker->op_type();
  if (loss == LossKind::kCrossEntropy && (op == "Softmax" || op == "LogSoftmax")) {
    if (IsOverClasses(*maker)) return TrainedValue{.name = maker->input(0)};
    return TrainedValue{.name = name, .form = op == "Softmax" ? OutputForm::kProbabilities : OutputForm::kPlain};
  }
  if (loss == LossKind::kBinaryCrossEntropy && op == "Sigmoid") return TrainedValue{.name = maker->input(0)};
  return TrainedValue{.name = name};
}

at::Tensor ComputeLoss(const LossSpec& loss, OutputForm form, const at::Tensor& value, const at::Tensor& target) {
  switch (loss.kind) {
    case LossKind::kCrossEntropy: return ClassLoss(loss, form, value, target);
    case LossKind::kBinaryCrossEntropy: return at::binary_cross_entropy_with_logits(value, Like(target, value));
    case LossKind::kMeanSquared: return at::mse_loss(value, Like(target, value));
    case LossKind::kAbsolute: return at::l1_loss(value, Like(target, value));
    case LossKind::kHuber: return at::huber_loss(value, Like(target, value), at::Reduction::Mean, loss.delta);
  }
  return {};
}

std::int64_t CountRight(LossKind loss, const at::Tensor& value, const at::Tensor& target) {
  if (loss == LossKind::kCrossEntropy) return ClassRows(value).argmax(1).eq(target).sum().item<std::int64_t>();
  return value.gt(0).eq(Like(target, value).gt(0.5)).sum().item<std::int64_t>();
}

}  // namespace tandem::training
