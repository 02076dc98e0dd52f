// Normalisations that look at one example at a time.

#include <ATen/ATen.h>

#include "runtimes/training/ops/families.h"
#include "runtimes/training/ops/run_checks.h"

namespace tandem::training {
namespace {

struct LayerForm {
  std::int64_t axis = -1;
  double epsilon = 1e-5;
  bool with_statistics = false;
  bool stash_float = true;
};

// Of their own, because ATen does not differentiate those that it finds on the way.
Tensors LayerStatistics(const LayerForm& form, const at::Tensor& x, std::int64_t axis) {
  std::vector<std::int64_t> axes;
  for (std::int64_t d = axis; d < x.dim(); ++d) axes.push_back(d);
  const at::Tensor mean = x.mean(axes, /*keepdim=*/true);
  const at::Tensor inverse_deviation = x.sub(mean).square().mean(axes, /*keepdim=*/true).add(form.epsilon).rsqrt();
  if (!form.stash_float) return {mean, inverse_deviation};
  return {mean.to(at::kFloat), inverse_deviation.to(at::kFloat)};
}

Tensors LayerNormalization(const LayerForm& form, std::span<const at::Tensor> in) {
  const at::Tensor& x = in[0];
  const std::int64_t axis = AxisOf(form.axis, x.dim());
  const at::IntArrayRef shape = x.sizes().slice(static_cast<std::size_t>(axis));
  const auto fitted = [&](const at::Tensor& t) { return !t.defined() || t.sizes() == shape ? t : t.expand(shape); };
  Tensors outputs{at::layer_norm(x, shape, fitted(in[1]), fitted(Optional(in, 2)), form.epsilon)};
  if (form.with_statistics) {
    for (at::Tensor& each : LayerStatistics(form, x, axis)) outputs.push_back(std::move(each));
  }
  return outputs;
}

Result<Kernel> MakeLayerNormalization(NodeView& node) {
  const LayerForm form{.axis = node.Int("axis", -1),
                       .epsilon = node.Float("epsilon", 1e-5),
                       .with_statistics = node.HasOutput(1) || node.HasOutput(2),
                       .stash_float = node.Int("stash_type", 1) == 1};
  return [form](const RunMode&, std::span<const at::Tensor> in) -> Tensors { return LayerNormalization(form, in); };
}

void CheckChannels(const at::Tensor& x, const at::Tensor& values, std::int64_t count) {
  Require(values.dim() == 1 && values.size(0) == count, "{} values are needed and {} given for {} channels", count,
          values.numel(), x.size(1));
}

Result<Kernel> MakeInstanceNormalization(NodeView& node) {
  const double epsilon = node.Float("epsilon", 1e-5);
  return [epsilon](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    const at::Tensor& x = in[0];
    Require(x.dim() >= 3, "the input has {} dimensions and needs three or more", x.dim());
    for (const at::Tensor& each : in.subspan(1, 2)) CheckChannels(x, each, x.size(1));
    return {at::instance_norm(x, in[1], in[2], {}, {}, /*use_input_stats=*/true, 0.0, epsilon,
                              /*cudnn_enabled=*/false)};
  };
}

// Scale and bias are one for each group before opset 21, and one for each channel from then on.
Result<Kernel> MakeGroupNormalization(NodeView& node) {
  const double epsilon = node.Float("epsilon", 1e-5);
  const std::int64_t groups = node.Int("num_groups", 0);
  const bool per_group = node.opset() < 21;
  if (node.Int("stash_type", 1) != 1)
    return Fail(ErrorCode::kUnsupported, "stash_type other than float is not supported");
  if (groups < 1) return Invalid("num_groups is {}", groups);
  return [epsilon, groups, per_group](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    const at::Tensor& x = in[0];
    Require(x.dim() >= 2 && x.size(1) % groups == 0, "the channels are no multiple of {} groups", groups);
    for (const at::Tensor& each : in.subspan(1, 2)) CheckChannels(x, each, per_group ? groups : x.size(1));
    const auto fitted = [&](const at::Tensor& t) { return per_group ? t.repeat_interleave(x.size(1) / groups) : t; };
    return {at::group_norm(x, groups, fitted(in[1]), fitted(in[2]), epsilon)};
  };
}

Result<Kernel> MakeMeanVarianceNormalization(NodeView& node) {
  auto axes = node.Ints("axes");
  if (axes.empty()) axes = {0, 2, 3};
  return [axes](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    const auto dims = AxesOf(axes, in[0].dim());
    const at::Tensor centred = in[0].sub(in[0].mean(dims, /*keepdim=*/true));
    return {centred.div(centred.square().mean(dims, /*keepdim=*/true).sqrt().add(1e-9))};
  };
}

struct LrnForm {
  double alpha = 0;
  double beta = 0;
  double bias = 0;
  std::int64_t size = 1;
};

// The mean of squares over neighbouring channels is a pool over a plane of channels and places.
at::Tensor Lrn(const LrnForm& form, const at::Tensor& x) {
  Require(x.dim() >= 2, "the input has {} dimensions", x.dim());
  if (x.numel() == 0) return x;
  at::Tensor squares = x.square().reshape({x.size(0), 1, x.size(1), -1});
  const std::int64_t before = (form.size - 1) / 2;
  const std::int64_t after = form.size - 1 - before;
  std::int64_t padding = before;
  if (before != after) {
    squares = at::constant_pad_nd(squares, {0, 0, before, after}, 0);
    padding = 0;
  }
  const at::Tensor means = at::avg_pool2d(squares, {form.size, 1}, {1, 1}, {padding, 0}, /*ceil_mode=*/false,
                                          /*count_include_pad=*/true);
  return x.div(means.reshape(x.sizes()).mul(form.alpha).add(form.bias).pow(form.beta));
}

Result<Kernel> MakeLrn(NodeView& node) {
  const LrnForm form{.alpha = node.Float("alpha", 1e-4),
                     .beta = node.Float("beta", 0.75),
                     .bias = node.Float("bias", 1.0),
                     .size = node.Int("size", 0)};
  if (form.size < 1 || form.size > (1 << 20)) return Invalid("size is {}", form.size);
  return [form](const RunMode&, std::span<const at::Tensor> in) -> Tensors { return {Lrn(form, in[0])}; };
}

Result<Kernel> MakeLpNormalization(NodeView& node) {
  const std::int64_t axis = node.Int("axis", -1);
  const std::int64_t p = node.Int("p", 2);
  if (p != 1 && p != 2) return Invalid("p is {}", p);
  return [axis, p](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    const at::Tensor norm = at::linalg_vector_norm(in[0], p, AxisOf(axis, in[0].dim()), /*keepdim=*/true);
    return {in[0].div(norm.masked_fill(norm.eq(0), 1))};
  };
}

}  // namespace

void AddNormalizationOps(OpTable& table) {
  table.Add("LayerNormalization", {2, 3, 3}, MakeLayerNormalization);
  table.Add("InstanceNormalization", {3, 3}, MakeInstanceNormalization);
  table.Add("GroupNormalization", {3, 3}, MakeGroupNormalization);
  table.Add("MeanVarianceNormalization", {1, 1}, MakeMeanVarianceNormalization);
  table.Add("LRN", {1, 1}, MakeLrn);
  table.Add("LpNormalization", {1, 1}, MakeLpNormalization);
}

}  // namespace tandem::training
