// Values that are given, counted or filled in, and other types of them.

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include "runtimes/training/ops/families.h"
#include "runtimes/training/ops/run_checks.h"
#include "runtimes/training/ops/tensor_proto.h"

namespace tandem::training {
namespace {

Result<Kernel> MakeConstant(NodeView& node) {
  at::Tensor value;
  TANDEM_ASSIGN(const auto tensor, node.TensorValue("value"));
  if (tensor) value = *tensor;
  if (node.Has("value_float")) value = at::scalar_tensor(node.Float("value_float", 0), at::kFloat);
  if (node.Has("value_int")) value = at::scalar_tensor(node.Int("value_int", 0), at::kLong);
  if (node.Has("value_floats")) value = at::tensor(node.Floats("value_floats"), at::kDouble).to(at::kFloat);
  if (node.Has("value_ints")) value = at::tensor(node.Ints("value_ints"), at::kLong);
  if (!value.defined())
    return Fail(ErrorCode::kUnsupported, "a value that is no dense tensor of numbers is not supported");
  return [value](const RunMode&, std::span<const at::Tensor>) -> Tensors { return {value}; };
}

Result<Kernel> MakeConstantOfShape(NodeView& node) {
  TANDEM_ASSIGN(const auto given, node.TensorValue("value"));
  const at::Tensor value = given ? *given : at::zeros({1}, at::kFloat);
  if (value.numel() != 1) return Invalid("value has {} elements", value.numel());
  return [fill = value.item(), type = value.scalar_type()](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    return {at::full(IntsOf(in[0], "the shape"), fill, type)};
  };
}

at::Tensor Range(const at::Tensor& start, const at::Tensor& limit, const at::Tensor& delta) {
  Require(start.scalar_type() == limit.scalar_type() && start.scalar_type() == delta.scalar_type(),
          "start, limit and delta are not of one type");
  const double from = NumberOf(start, "start");
  const double to = NumberOf(limit, "limit");
  const double step = NumberOf(delta, "delta");
  Require(step != 0 && std::isfinite((to - from) / step), "from {} to {} in steps of {} is endless", from, to, step);
  // ATen's own sums of whole numbers overflow unseen.
  constexpr double kFurthest = 1LL << 53;
  Require(
      std::max({std::abs(from), std::abs(to), std::abs(step)}) <= kFurthest || at::isFloatingType(start.scalar_type()),
      "from {} to {} in steps of {} is too far", from, to, step);
  if ((to - from) / step <= 0) return at::empty({0}, start.options());
  return at::arange(start.item(), limit.item(), delta.item(), start.options());
}

Result<Kernel> MakeRange(NodeView&) {
  return [](const RunMode&, std::span<const at::Tensor> in) -> Tensors { return {Range(in[0], in[1], in[2])}; };
}

Result<Kernel> MakeCast(NodeView& node) {
  TANDEM_ASSIGN(const at::ScalarType type, ScalarTypeOf(static_cast<int>(node.Int("to", 0))));
  // Only types of 8 bits saturate.
  static_cast<void>(node.Int("saturate", 1));
  return [type](const RunMode&, std::span<const at::Tensor> in) -> Tensors { return {in[0].to(type)}; };
}

Result<Kernel> MakeCastLike(NodeView& node) {
  static_cast<void>(node.Int("saturate", 1));
  return [](const RunMode&, std::span<const at::Tensor> in) -> Tensors { return {in[0].to(in[1].scalar_type())}; };
}

}  // namespace

void AddConstantOps(OpTable& table) {
  table.Add("Constant", {0, 0}, MakeConstant);
  table.Add("ConstantOfShape", {1, 1}, MakeConstantOfShape);
  table.Add("Range", {3, 3}, MakeRange);
  table.Add("Cast", {1, 1}, MakeCast);
  table.Add("CastLike", {2, 2}, MakeCastLike);
}

}  // namespace tandem::training
