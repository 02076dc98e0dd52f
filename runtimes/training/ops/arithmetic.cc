// Operators that work element by element on numbers, with ONNX's broadcasting, which is ATen's.

#include <ATen/ATen.h>

#include "runtimes/training/ops/families.h"

namespace tandem::training {
namespace {

using Unary = at::Tensor (*)(const at::Tensor&);
using Binary = at::Tensor (*)(const at::Tensor&, const at::Tensor&);

template <Unary kFunction>
Result<Kernel> MakeUnary(NodeView&) {
  return [](const RunMode&, std::span<const at::Tensor> in) -> Tensors { return {kFunction(in[0])}; };
}

template <Binary kFunction>
Result<Kernel> MakeBinary(NodeView&) {
  return [](const RunMode&, std::span<const at::Tensor> in) -> Tensors { return {kFunction(in[0], in[1])}; };
}

at::Tensor Add(const at::Tensor& a, const at::Tensor& b) {
  return at::add(a, b);
}

at::Tensor Subtract(const at::Tensor& a, const at::Tensor& b) {
  return at::sub(a, b);
}

// Whole numbers are divided as in C, towards zero.
at::Tensor Divide(const at::Tensor& a, const at::Tensor& b) {
  return at::isIntegralType(a.scalar_type(), /*includeBool=*/true) ? at::div(a, b, "trunc") : at::div(a, b);
}

}  // namespace

void AddArithmeticOps(OpTable& table) {
  table.Add("Add", MakeBinary<Add>);
  table.Add("Sub", MakeBinary<Subtract>);
  table.Add("Mul", MakeBinary<at::mul>);
  table.Add("Div", MakeBinary<Divide>);
  table.Add("Sqrt", MakeUnary<at::sqrt>);
}

}  // namespace tandem::training
