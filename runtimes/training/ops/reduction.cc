// Operators that make one number of many along axes.

#include <limits>

#include <ATen/ATen.h>

#include "runtimes/training/ops/families.h"
#include "runtimes/training/ops/run_checks.h"

namespace tandem::training {
namespace {

// Along `axes`, which are all of them and never none unless the input is one number; dimensions stay with size 1.
using Reduction = at::Tensor (*)(const at::Tensor& x, at::IntArrayRef axes);

at::Tensor ReduceSum(const at::Tensor& x, at::IntArrayRef axes) {
  return at::sum(x, axes, /*keepdim=*/true, x.scalar_type());
}

at::Tensor ReduceMean(const at::Tensor& x, at::IntArrayRef axes) {
  if (at::isFloatingType(x.scalar_type())) return at::mean(x, axes, /*keepdim=*/true);
  return at::mean(x, axes, /*keepdim=*/true, at::kDouble).trunc().to(x.scalar_type());
}

at::Tensor ReduceProd(const at::Tensor& x, at::IntArrayRef axes) {
  at::Tensor y = x;
  for (const std::int64_t axis : axes) y = at::prod(y, axis, /*keepdim=*/true, x.scalar_type());
  return y;
}

// The largest or smallest of nothing: what every number replaces.
template <bool kLargest>
at::Tensor OfNothing(const at::Tensor& x, at::IntArrayRef axes) {
  std::vector<std::int64_t> shape(x.sizes().begin(), x.sizes().end());
  for (const std::int64_t axis : axes) shape[static_cast<std::size_t>(axis)] = 1;
  const double infinity = std::numeric_limits<double>::infinity();
  if (at::isFloatingType(x.scalar_type())) return at::full(shape, kLargest ? -infinity : infinity, x.options());
  if (x.scalar_type() == at::kBool) return at::full(shape, !kLargest, x.options());
  throw std::invalid_argument("whole numbers have no largest or smallest of none");
}

bool IsOfNothing(const at::Tensor& x, at::IntArrayRef axes) {
  return std::ranges::any_of(axes, [&](std::int64_t axis) { return x.size(axis) == 0; });
}

at::Tensor ReduceMax(const at::Tensor& x, at::IntArrayRef axes) {
  return IsOfNothing(x, axes) ? OfNothing<true>(x, axes) : at::amax(x, axes, /*keepdim=*/true);
}

at::Tensor ReduceMin(const at::Tensor& x, at::IntArrayRef axes) {
  return IsOfNothing(x, axes) ? OfNothing<false>(x, axes) : at::amin(x, axes, /*keepdim=*/true);
}

at::Tensor ReduceL1(const at::Tensor& x, at::IntArrayRef axes) {
  return ReduceSum(x.abs(), axes);
}

at::Tensor ReduceL2(const at::Tensor& x, at::IntArrayRef axes) {
  if (x.dim() == 0) return x.abs();
  if (at::isFloatingType(x.scalar_type())) return at::linalg_vector_norm(x, 2, axes, /*keepdim=*/true);
  return at::linalg_vector_norm(x.to(at::kDouble), 2, axes, /*keepdim=*/true).to(x.scalar_type());
}

at::Tensor ReduceLogSum(const at::Tensor& x, at::IntArrayRef axes) {
  return ReduceSum(x, axes).log().to(x.scalar_type());
}

at::Tensor ReduceLogSumExp(const at::Tensor& x, at::IntArrayRef axes) {
  if (x.dim() == 0) return x;
  return at::logsumexp(x, axes, /*keepdim=*/true).to(x.scalar_type());
}

at::Tensor ReduceSumSquare(const at::Tensor& x, at::IntArrayRef axes) {
  return ReduceSum(x.square(), axes);
}

template <Reduction kReduction>
Result<Kernel> MakeReduction(NodeView& node) {
  const auto attribute = node.Ints("axes");
  const bool keeps = node.Int("keepdims", 1) != 0;
  const bool none_is_none = node.Int("noop_with_empty_axes", 0) != 0;
  return [attribute, keeps, none_is_none](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    const at::Tensor& x = in[0];
    const at::Tensor given = Optional(in, 1);
    auto axes = AxesOf(given.defined() ? IntsOf(given, "axes") : attribute, x.dim());
    if (axes.empty()) {
      if (none_is_none) return {x};
      for (std::int64_t d = 0; d < x.dim(); ++d) axes.push_back(d);
    }
    const at::Tensor y = kReduction(x, axes);
    return {keeps || axes.empty() ? y : y.squeeze(axes)};
  };
}

}  // namespace

void AddReductionOps(OpTable& table) {
  table.Add("ReduceSum", {1, 2}, MakeReduction<ReduceSum>);
  table.Add("ReduceMean", {1, 2}, MakeReduction<ReduceMean>);
  table.Add("ReduceProd", {1, 2}, MakeReduction<ReduceProd>);
  table.Add("ReduceMax", {1, 2}, MakeReduction<ReduceMax>);
  table.Add("ReduceMin", {1, 2}, MakeReduction<ReduceMin>);
  table.Add("ReduceL1", {1, 2}, MakeReduction<ReduceL1>);
  table.Add("ReduceL2", {1, 2}, MakeReduction<ReduceL2>);
  table.Add("ReduceLogSum", {1, 2}, MakeReduction<ReduceLogSum>);
  table.Add("ReduceLogSumExp", {1, 2}, MakeReduction<ReduceLogSumExp>);
  table.Add("ReduceSumSquare", {1, 2}, MakeReduction<ReduceSumSquare>);
}

}  // namespace tandem::training
