// Operators that order elements along an axis, or add them up in order.

#include <ATen/ATen.h>

#include "runtimes/training/ops/families.h"
#include "runtimes/training/ops/run_checks.h"

namespace tandem::training {
namespace {

using ArgFunction = at::Tensor (*)(const at::Tensor&, std::optional<std::int64_t>, bool);

template <ArgFunction kFunction>
Result<Kernel> MakeArg(NodeView& node) {
  const std::int64_t axis = node.Int("axis", 0);
  const bool keeps = node.Int("keepdims", 1) != 0;
  const bool last = node.Int("select_last_index", 0) != 0;
  return [axis, keeps, last](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    const std::int64_t d = AxisOf(axis, in[0].dim());
    if (!last) return {kFunction(in[0], d, keeps)};
    return {kFunction(in[0].flip({d}), d, keeps).neg().add(in[0].size(d) - 1)};
  };
}

// A stable sort, because ONNX takes the first of equals. How many stands in an attribute before opset 10.
Result<Kernel> MakeTopK(NodeView& node) {
  const std::int64_t axis = node.Int("axis", -1);
  const bool largest = node.Int("largest", 1) != 0;
  // Sorted is one of the orders that a node which does not ask for one may get.
  static_cast<void>(node.Int("sorted", 1));
  const std::int64_t attribute = node.Int("k", -1);
  if (node.opset() >= 10 && !node.HasInput(1)) return Invalid("K is missing");
  return [axis, largest, attribute](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    const at::Tensor& x = in[0];
    const at::Tensor given = Optional(in, 1);
    const std::int64_t count = given.defined() ? IntOf(given, "K") : attribute;
    const std::int64_t d = AxisOf(axis, x.dim());
    Require(count >= 0 && count <= x.size(d), "{} of {} elements are wanted", count, x.size(d));
    auto [values, indices] = at::sort(x, /*stable=*/true, d, /*descending=*/largest);
    return {values.narrow(d, 0, count), indices.narrow(d, 0, count)};
  };
}

Result<Kernel> MakeCumSum(NodeView& node) {
  const bool exclusive = node.Int("exclusive", 0) != 0;
  const bool reverse = node.Int("reverse", 0) != 0;
  return [exclusive, reverse](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    const std::int64_t d = AxisOf(IntOf(in[1], "axis"), in[0].dim());
    at::Tensor x = reverse ? in[0].flip({d}) : in[0];
    if (exclusive && x.size(d) > 0) {
      x = at::cat({at::zeros_like(x.narrow(d, 0, 1)), x.narrow(d, 0, x.size(d) - 1)}, d);
    }
    const at::Tensor sums = at::cumsum(x, d, x.scalar_type());
    return {reverse ? sums.flip({d}) : sums};
  };
}

// The elements once each, with the place where each came first, what became of every element, and how often it came.
Tensors Unique(const at::Tensor& x, std::int64_t axis, bool sorted) {
  Require(x.size(axis) > 0, "there is nothing to be unique");
  auto [values, inverse, counts] =
      at::unique_dim(x.detach(), axis, /*sorted=*/true, /*return_inverse=*/true, /*return_counts=*/true);
  const at::Tensor places = at::arange(x.size(axis), at::kLong);
  at::Tensor first = at::full({counts.size(0)}, x.size(axis), at::kLong).scatter_reduce(0, inverse, places, "amin");
  if (!sorted) {
    const at::Tensor order = first.argsort();
    first = first.index_select(0, order);
    counts = counts.index_select(0, order);
    // The inverse of a permutation is what sorts it.
    inverse = order.argsort().index_select(0, inverse);
  }
  return {x.index_select(axis, first), first, inverse, counts};
}

Result<Kernel> MakeUnique(NodeView& node) {
  const bool flattens = !node.Has("axis");
  const std::int64_t axis = node.Int("axis", 0);
  const bool sorted = node.Int("sorted", 1) != 0;
  return [flattens, axis, sorted](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    const at::Tensor x = flattens ? in[0].flatten() : in[0];
    return Unique(x, AxisOf(axis, x.dim()), sorted);
  };
}

}  // namespace

void AddRankingOps(OpTable& table) {
  table.Add("ArgMax", {1, 1}, MakeArg<at::argmax>);
  table.Add("ArgMin", {1, 1}, MakeArg<at::argmin>);
  table.Add("TopK", {1, 2, 2}, MakeTopK);
  table.Add("CumSum", {2, 2}, MakeCumSum);
  table.Add("Unique", {1, 1, 4}, MakeUnique);
}

}  // namespace tandem::training
