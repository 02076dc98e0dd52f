// Softmax and its kin. Before opset 13 they take all dimensions from the axis on as one.

#include <ATen/ATen.h>

#include "runtimes/training/ops/families.h"
#include "runtimes/training/ops/run_checks.h"

namespace tandem::training {
namespace {

using AlongAxis = at::Tensor (*)(const at::Tensor&, std::int64_t);

at::Tensor Softmax(const at::Tensor& x, std::int64_t axis) {
  return at::softmax(x, axis);
}

at::Tensor LogSoftmax(const at::Tensor& x, std::int64_t axis) {
  return at::log_softmax(x, axis);
}

at::Tensor Hardmax(const at::Tensor& x, std::int64_t axis) {
  if (x.numel() == 0) return x;
  return at::zeros_like(x).scatter(axis, at::argmax(x, axis, /*keepdim=*/true), 1);
}

template <AlongAxis kFunction>
Result<Kernel> MakeAlongAxis(NodeView& node) {
  const bool flattens = node.opset() < 13;
  const std::int64_t axis = node.Int("axis", flattens ? 1 : -1);
  return [flattens, axis](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    const at::Tensor& x = in[0];
    const std::int64_t from = AxisOf(axis, x.dim());
    if (!flattens || from == x.dim() - 1 || x.numel() == 0) return {kFunction(x, from)};
    return {kFunction(x.flatten(from), from).reshape(x.sizes())};
  };
}

}  // namespace

void AddSoftmaxOps(OpTable& table) {
  table.Add("Softmax", {1, 1}, MakeAlongAxis<Softmax>);
  table.Add("LogSoftmax", {1, 1}, MakeAlongAxis<LogSoftmax>);
  table.Add("Hardmax", {1, 1}, MakeAlongAxis<Hardmax>);
}

}  // namespace tandem::training
