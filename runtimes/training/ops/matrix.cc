// Products of matrices and what else works on them.

#include <algorithm>

#include <ATen/ATen.h>

#include "runtimes/training/ops/elementwise.h"
#include "runtimes/training/ops/families.h"
#include "runtimes/training/ops/run_checks.h"
#include "runtimes/training/ops/tensor_proto.h"

namespace tandem::training {
namespace {

struct GemmForm {
  double alpha = 1;
  double beta = 1;
  bool transpose_a = false;
  bool transpose_b = false;
};

at::Tensor Gemm(const GemmForm& form, std::span<const at::Tensor> in) {
  Require(in[0].dim() == 2 && in[1].dim() == 2, "both factors must be matrices");
  const at::Tensor a = form.transpose_a ? in[0].t() : in[0];
  const at::Tensor b = form.transpose_b ? in[1].t() : in[1];
  const at::Tensor c = Optional(in, 2);
  // ATen takes no fractions for whole numbers.
  const bool whole = at::isIntegralType(a.scalar_type(), /*includeBool=*/false);
  const auto factor = [whole](double value) {
    return whole ? at::Scalar(static_cast<std::int64_t>(value)) : at::Scalar(value);
  };
  if (c.defined()) return at::addmm(c, a, b, factor(form.beta), factor(form.alpha));
  const at::Tensor product = at::mm(a, b);
  return form.alpha == 1 ? product : product.mul(factor(form.alpha));
}

Result<Kernel> MakeGemm(NodeView& node) {
  const GemmForm form{.alpha = node.Float("alpha", 1.0),
                      .beta = node.Float("beta", 1.0),
                      .transpose_a = node.Int("transA", 0) != 0,
                      .transpose_b = node.Int("transB", 0) != 0};
  return [form](const RunMode&, std::span<const at::Tensor> in) -> Tensors { return {Gemm(form, in)}; };
}

Result<Kernel> MakeEinsum(NodeView& node) {
  const std::string equation = node.Text("equation", "");
  if (equation.empty()) return Invalid("equation is missing");
  return [equation](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    for (const at::Tensor& factor : in) Require(factor.defined(), "an input is left out");
    return {at::einsum(equation, at::TensorList(in.data(), in.size()))};
  };
}

Result<Kernel> MakeTrilu(NodeView& node) {
  const bool upper = node.Int("upper", 1) != 0;
  return [upper](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    const at::Tensor& x = in[0];
    Require(x.dim() >= 2, "the input is no matrix");
    const at::Tensor given = Optional(in, 1);
    // Beyond the matrix all diagonals are alike.
    const std::int64_t diagonal = given.defined() ? std::clamp(IntOf(given, "k"), -x.size(-2) - 1, x.size(-1) + 1) : 0;
    return {upper ? at::triu(x, diagonal) : at::tril(x, diagonal)};
  };
}

Result<Kernel> MakeEyeLike(NodeView& node) {
  const std::int64_t diagonal = node.Int("k", 0);
  std::optional<at::ScalarType> type;
  if (node.Has("dtype")) {
    TANDEM_ASSIGN(type, ScalarTypeOf(static_cast<int>(node.Int("dtype", 0))));
  }
  return [diagonal, type](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    const at::Tensor& x = in[0];
    Require(x.dim() == 2, "the input is no matrix");
    at::Tensor eye = at::zeros(x.sizes(), x.options().dtype(type.value_or(x.scalar_type())));
    if (diagonal > -x.size(0) && diagonal < x.size(1)) eye.diagonal(diagonal).fill_(1);
    return {eye};
  };
}

}  // namespace

void AddMatrixOps(OpTable& table) {
  table.Add("MatMul", {2, 2}, MakeBinary<at::matmul>);
  table.Add("Gemm", {2, 3}, MakeGemm);
  table.Add("Einsum", {1, kMany}, MakeEinsum);
  table.Add("Det", {1, 1}, MakeUnary<at::det>);
  table.Add("Trilu", {1, 2}, MakeTrilu);
  table.Add("EyeLike", {1, 1}, MakeEyeLike);
}

}  // namespace tandem::training
