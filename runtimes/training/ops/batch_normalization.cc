// Batch normalisation, with the statistics of the batch or with those that were kept.

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "runtimes/training/ops/families.h"
#include "runtimes/training/ops/run_checks.h"

namespace tandem::training {
namespace {

struct BatchNormForm {
  double epsilon = 1e-5;
  double momentum = 0.9;  // Of the kept statistic; ATen means the share of the new one.
  bool training_mode = false;
};

// ATen's own check is in a function that would also keep statistics, with another variance than ONNX's.
void CheckShapes(std::span<const at::Tensor> in) {
  Require(in[0].dim() >= 2, "the input has {} dimensions and needs two or more", in[0].dim());
  for (const at::Tensor& each : in.subspan(1, 4)) {
    Require(each.dim() == 1 && each.size(0) == in[0].size(1), "the input has {} channels, a scale or statistic {}",
            in[0].size(1), each.numel());
  }
}

Tensors NormalizeByBatch(const BatchNormForm& form, const RunMode& mode, std::span<const at::Tensor> in) {
  Require(in[0].numel() > 0, "an empty batch has no statistics");
  auto [y, mean, inverse_deviation] =
      at::native_batch_norm(in[0], in[1], in[2], {}, {}, /*training=*/true, 0.0, form.epsilon);
  const bool update = mode.update_batch_norm && !mode.again;
  if (!update && !form.training_mode) return {y};
  const at::NoGradGuard no_gradients;
  const at::Tensor variance = inverse_deviation.detach().pow(-2).sub(form.epsilon).clamp_min(0);
  const auto kept = [&](const at::Tensor& old, const at::Tensor& fresh) {
    return old.mul(form.momentum).add(fresh.to(old.scalar_type()), 1 - form.momentum);
  };
  const at::Tensor new_mean = kept(in[3], mean.detach());
  const at::Tensor new_variance = kept(in[4], variance);
  if (update) {
    in[3].detach().copy_(new_mean);
    in[4].detach().copy_(new_variance);
  }
  return {y, new_mean, new_variance};
}

Result<Kernel> MakeBatchNormalization(NodeView& node) {
  const BatchNormForm form{.epsilon = node.Float("epsilon", 1e-5),
                           .momentum = node.Float("momentum", 0.9),
                           .training_mode = node.Int("training_mode", 0) != 0};
  if (node.Int("spatial", 1) != 1) {
    return Fail(ErrorCode::kUnsupported, "statistics for each place (spatial = 0) are not supported");
  }
  if (!form.training_mode && (node.HasOutput(1) || node.HasOutput(2))) {
    return Fail(ErrorCode::kUnsupported, "statistics as outputs need training_mode, which opset 14 brought");
  }
  if (node.HasOutput(3) || node.HasOutput(4)) {
    return Fail(ErrorCode::kUnsupported, "saved statistics as outputs are not supported");
  }
  return [form](const RunMode& mode, std::span<const at::Tensor> in) -> Tensors {
    CheckShapes(in);
    if (mode.update_batch_norm || form.training_mode) return NormalizeByBatch(form, mode, in);
    return {at::batch_norm(in[0], in[1], in[2], in[3].detach(), in[4].detach(), /*training=*/false, 0.0, form.epsilon,
                           /*cudnn_enabled=*/false)};
  };
}

}  // namespace

void AddBatchNormalizationOps(OpTable& table) {
  table.Add("BatchNormalization", {5, 5, 5}, MakeBatchNormalization);
}

}  // namespace tandem::training
