// Operators that work element by element on numbers.

#include <ATen/ATen.h>

#include "runtimes/training/ops/elementwise.h"
#include "runtimes/training/ops/families.h"
#include "runtimes/training/ops/run_checks.h"

namespace tandem::training {
namespace {

bool IsWhole(const at::Tensor& tensor) {
  return at::isIntegralType(tensor.scalar_type(), /*includeBool=*/true);
}

at::Tensor Add(const at::Tensor& a, const at::Tensor& b) {
  return at::add(a, b);
}

at::Tensor Subtract(const at::Tensor& a, const at::Tensor& b) {
  return at::sub(a, b);
}

// Whole numbers are divided as in C, towards zero. The processor traps when the smallest number is divided by -1.
at::Tensor Divide(const at::Tensor& a, const at::Tensor& b) {
  if (!IsWhole(a)) return at::div(a, b);
  const at::Tensor traps = b.eq(-1);
  return at::where(traps, at::mul(a, -1), at::div(a, b.masked_fill(traps, 1), "trunc"));
}

// The base's type is the result's. An exponent that is one number for all is told to ATen as such, which has short ways
// for squares and roots.
at::Tensor Power(const at::Tensor& base, const at::Tensor& exponent) {
  const bool plain = exponent.numel() == 1 && exponent.dim() <= base.dim() && !exponent.requires_grad();
  if (plain && at::isFloatingType(base.scalar_type())) return at::pow(base, exponent.item());
  return at::pow(base, exponent).to(base.scalar_type());
}

Result<Kernel> MakeMod(NodeView& node) {
  const bool sign_of_dividend = node.Int("fmod", 0) != 0;
  return [sign_of_dividend](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    at::Tensor divisor = in[1];
    // The rest by -1 is that by 1, and does not trap.
    if (IsWhole(divisor)) divisor = divisor.masked_fill(divisor.eq(-1), 1);
    return {sign_of_dividend ? at::fmod(in[0], divisor) : at::remainder(in[0], divisor)};
  };
}

template <BinaryFunction kFunction>
at::Tensor Combine(std::span<const at::Tensor> in) {
  at::Tensor result = in[0];
  for (const at::Tensor& tensor : in.subspan(1)) {
    Require(tensor.defined(), "an input is left out");
    result = kFunction(result, tensor);
  }
  return result;
}

template <BinaryFunction kFunction>
Result<Kernel> MakeCombination(NodeView&) {
  return [](const RunMode&, std::span<const at::Tensor> in) -> Tensors { return {Combine<kFunction>(in)}; };
}

Result<Kernel> MakeMean(NodeView&) {
  return [](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    return {Combine<Add>(in).div(static_cast<double>(in.size()))};
  };
}

}  // namespace

void AddArithmeticOps(OpTable& table) {
  table.Add("Add", {2, 2}, MakeBinary<Add>);
  table.Add("Sub", {2, 2}, MakeBinary<Subtract>);
  table.Add("Mul", {2, 2}, MakeBinary<at::mul>);
  table.Add("Div", {2, 2}, MakeBinary<Divide>);
  table.Add("Pow", {2, 2}, MakeBinary<Power>);
  table.Add("Mod", {2, 2}, MakeMod);
  table.Add("Neg", {1, 1}, MakeUnary<at::neg>);
  table.Add("Abs", {1, 1}, MakeUnary<at::abs>);
  table.Add("Sign", {1, 1}, MakeUnary<at::sign>);
  table.Add("Reciprocal", {1, 1}, MakeUnary<at::reciprocal>);
  table.Add("Sqrt", {1, 1}, MakeUnary<at::sqrt>);
  table.Add("Exp", {1, 1}, MakeUnary<at::exp>);
  table.Add("Log", {1, 1}, MakeUnary<at::log>);
  table.Add("Erf", {1, 1}, MakeUnary<at::erf>);
  table.Add("Floor", {1, 1}, MakeUnary<at::floor>);
  table.Add("Ceil", {1, 1}, MakeUnary<at::ceil>);
  table.Add("Round", {1, 1}, MakeUnary<at::round>);
  table.Add("Sum", {1, kMany}, MakeCombination<Add>);
  table.Add("Max", {1, kMany}, MakeCombination<at::maximum>);
  table.Add("Min", {1, kMany}, MakeCombination<at::minimum>);
  table.Add("Mean", {1, kMany}, MakeMean);
}

}  // namespace tandem::training
