// Comparisons, truth values and bits.

#include <ATen/ATen.h>

#include "runtimes/training/ops/elementwise.h"
#include "runtimes/training/ops/families.h"
#include "runtimes/training/ops/run_checks.h"

namespace tandem::training {
namespace {

Result<Kernel> MakeIsInf(NodeView& node) {
  const bool negative = node.Int("detect_negative", 1) != 0;
  const bool positive = node.Int("detect_positive", 1) != 0;
  return [negative, positive](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    if (negative && positive) return {at::isinf(in[0])};
    if (negative) return {at::isneginf(in[0])};
    if (positive) return {at::isposinf(in[0])};
    return {at::zeros_like(in[0], at::kBool)};
  };
}

// Only unsigned numbers are shifted, and of these ATen knows those of one byte.
Result<Kernel> MakeBitShift(NodeView& node) {
  const std::string direction = node.Text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") return Invalid("direction is '{}'", direction);
  const bool left = direction == "LEFT";
  return [left](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    Require(at::isIntegralType(in[0].scalar_type(), false) && in[0].scalar_type() == in[1].scalar_type(),
            "both inputs must be whole numbers of one type");
    // A shift by more than the width of the number leaves nothing.
    const at::Tensor by = in[1].clamp(0, 63).to(at::kLong);
    const at::Tensor value = in[0].to(at::kLong);
    const at::Tensor shifted = left ? at::bitwise_left_shift(value, by) : at::bitwise_right_shift(value, by);
    return {shifted.to(in[0].scalar_type())};
  };
}

Result<Kernel> MakeWhere(NodeView&) {
  return [](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    Require(in[0].scalar_type() == at::kBool, "the condition must be of truth values");
    return {at::where(in[0], in[1], in[2])};
  };
}

}  // namespace

void AddLogicOps(OpTable& table) {
  table.Add("Equal", {2, 2}, MakeBinary<at::eq>);
  table.Add("Greater", {2, 2}, MakeBinary<at::gt>);
  table.Add("GreaterOrEqual", {2, 2}, MakeBinary<at::ge>);
  table.Add("Less", {2, 2}, MakeBinary<at::lt>);
  table.Add("LessOrEqual", {2, 2}, MakeBinary<at::le>);
  table.Add("And", {2, 2}, MakeBinary<at::logical_and>);
  table.Add("Or", {2, 2}, MakeBinary<at::logical_or>);
  table.Add("Xor", {2, 2}, MakeBinary<at::logical_xor>);
  table.Add("Not", {1, 1}, MakeUnary<at::logical_not>);
  table.Add("Where", {3, 3}, MakeWhere);
  table.Add("IsNaN", {1, 1}, MakeUnary<at::isnan>);
  table.Add("IsInf", {1, 1}, MakeIsInf);
  table.Add("BitShift", {2, 2}, MakeBitShift);
  table.Add("BitwiseAnd", {2, 2}, MakeBinary<at::bitwise_and>);
  table.Add("BitwiseOr", {2, 2}, MakeBinary<at::bitwise_or>);
  table.Add("BitwiseXor", {2, 2}, MakeBinary<at::bitwise_xor>);
  table.Add("BitwiseNot", {1, 1}, MakeUnary<at::bitwise_not>);
}

}  // namespace tandem::training
