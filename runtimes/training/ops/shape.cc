// Operators that give the same values another shape, or tell the shape.

#include <algorithm>
#include <limits>

#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>

#include "runtimes/training/ops/elementwise.h"
#include "runtimes/training/ops/families.h"
#include "runtimes/training/ops/run_checks.h"

namespace tandem::training {
namespace {

using Sizes = std::vector<std::int64_t>;

// Axes stand in an attribute before opset 13, and in an input from then on.
Sizes AxesGiven(const Sizes& attribute, std::span<const at::Tensor> in) {
  const at::Tensor given = Optional(in, 1);
  return given.defined() ? IntsOf(given, "axes") : attribute;
}

Result<Kernel> MakeReshape(NodeView& node) {
  const bool zero_is_zero = node.Int("allowzero", 0) != 0;
  return [zero_is_zero](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    Sizes shape = IntsOf(in[1], "the shape");
    for (std::size_t d = 0; d < shape.size() && !zero_is_zero; ++d) {
      if (shape[d] != 0) continue;
      Require(static_cast<std::int64_t>(d) < in[0].dim(), "dimension {} is to be kept, and is not there", d);
      shape[d] = in[0].size(static_cast<std::int64_t>(d));
    }
    return {in[0].reshape(shape)};
  };
}

Result<Kernel> MakeFlatten(NodeView& node) {
  const std::int64_t axis = node.Int("axis", 1);
  return [axis](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    const at::Tensor& x = in[0];
    Require(axis >= -x.dim() && axis <= x.dim(), "axis {} is not one of {} dimensions", axis, x.dim());
    const std::int64_t split = axis < 0 ? axis + x.dim() : axis;
    std::int64_t rows = 1;
    std::int64_t columns = 1;
    for (std::int64_t d = 0; d < x.dim(); ++d) (d < split ? rows : columns) *= x.size(d);
    return {x.reshape({rows, columns})};
  };
}

Result<Kernel> MakeTranspose(NodeView& node) {
  const Sizes order = node.Ints("perm");
  return [order](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    if (!order.empty()) return {in[0].permute(order)};
    Sizes reversed;
    for (std::int64_t d = in[0].dim() - 1; d >= 0; --d) reversed.push_back(d);
    return {in[0].permute(reversed)};
  };
}

Result<Kernel> MakeSqueeze(NodeView& node) {
  const Sizes axes = node.Ints("axes");
  const bool named = node.Has("axes") || node.HasInput(1);
  return [axes, named](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    if (!named) return {in[0].squeeze()};
    const Sizes dims = AxesOf(AxesGiven(axes, in), in[0].dim());
    for (const std::int64_t d : dims) Require(in[0].size(d) == 1, "dimension {} is of size {}", d, in[0].size(d));
    return {in[0].squeeze(dims)};
  };
}

Result<Kernel> MakeUnsqueeze(NodeView& node) {
  const Sizes axes = node.Ints("axes");
  if (node.inputs() < 2 && !node.Has("axes")) return Invalid("axes are missing");
  return [axes](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    const Sizes given = AxesGiven(axes, in);
    Sizes dims = AxesOf(given, in[0].dim() + static_cast<std::int64_t>(given.size()));
    std::ranges::sort(dims);
    at::Tensor y = in[0];
    for (const std::int64_t d : dims) y = y.unsqueeze(d);
    return {y};
  };
}

Result<Kernel> MakeShape(NodeView& node) {
  const std::int64_t start = node.Int("start", 0);
  const std::optional<std::int64_t> end = node.Has("end") ? std::optional(node.Int("end", 0)) : std::nullopt;
  return [start, end](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    const std::int64_t rank = in[0].dim();
    const auto place = [rank](std::int64_t d) { return std::clamp<std::int64_t>(d < 0 ? d + rank : d, 0, rank); };
    const std::int64_t from = place(start);
    const std::int64_t to = std::max(from, place(end.value_or(rank)));
    return {at::tensor(in[0].sizes().slice(static_cast<std::size_t>(from), static_cast<std::size_t>(to - from)),
                       at::kLong)};
  };
}

Result<Kernel> MakeSize(NodeView&) {
  return [](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    return {at::scalar_tensor(in[0].numel(), at::kLong)};
  };
}

Result<Kernel> MakeExpand(NodeView&) {
  return [](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    const Sizes shape = IntsOf(in[1], "the shape");
    for (const std::int64_t size : shape) Require(size >= 0, "the shape has {}", size);
    return {in[0].expand(at::infer_size(in[0].sizes(), shape))};
  };
}

Result<Kernel> MakeTile(NodeView&) {
  return [](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    const Sizes repeats = IntsOf(in[1], "repeats");
    Require(static_cast<std::int64_t>(repeats.size()) == in[0].dim(), "repeats has {} values for {} dimensions",
            repeats.size(), in[0].dim());
    for (const std::int64_t each : repeats) {
      Require(each >= 0 && each <= std::numeric_limits<std::int32_t>::max(), "repeats has {}", each);
    }
    return {in[0].repeat(repeats)};
  };
}

at::Tensor Identity(const at::Tensor& x) {
  return x;
}

Result<std::int64_t> ReadBlock(NodeView& node) {
  const std::int64_t block = node.Int("blocksize", 0);
  if (block < 1 || block > (1 << 15)) return Invalid("blocksize is {}", block);
  return block;
}

Result<Kernel> MakeDepthToSpace(NodeView& node) {
  TANDEM_ASSIGN(const std::int64_t block, ReadBlock(node));
  const std::string mode = node.Text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") return Invalid("mode is '{}'", mode);
  const bool depth_first = mode == "DCR";
  return [block, depth_first](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    const at::Tensor& x = in[0];
    Require(x.dim() == 4 && x.size(1) % (block * block) == 0, "the input's channels are no multiple of the block");
    const std::int64_t n = x.size(0), c = x.size(1) / (block * block), h = x.size(2), w = x.size(3);
    const at::Tensor y = depth_first ? x.reshape({n, block, block, c, h, w}).permute({0, 3, 4, 1, 5, 2})
                                     : x.reshape({n, c, block, block, h, w}).permute({0, 1, 4, 2, 5, 3});
    return {y.reshape({n, c, h * block, w * block})};
  };
}

Result<Kernel> MakeSpaceToDepth(NodeView& node) {
  TANDEM_ASSIGN(const std::int64_t block, ReadBlock(node));
  return [block](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    const at::Tensor& x = in[0];
    Require(x.dim() == 4 && x.size(2) % block == 0 && x.size(3) % block == 0, "the input is no multiple of the block");
    const std::int64_t n = x.size(0), c = x.size(1), h = x.size(2) / block, w = x.size(3) / block;
    const at::Tensor y = x.reshape({n, c, h, block, w, block}).permute({0, 3, 5, 1, 2, 4});
    return {y.reshape({n, c * block * block, h, w})};
  };
}

}  // namespace

void AddShapeOps(OpTable& table) {
  table.Add("Reshape", {2, 2}, MakeReshape);
  table.Add("Flatten", {1, 1}, MakeFlatten);
  table.Add("Transpose", {1, 1}, MakeTranspose);
  table.Add("Squeeze", {1, 2}, MakeSqueeze);
  table.Add("Unsqueeze", {1, 2}, MakeUnsqueeze);
  table.Add("Shape", {1, 1}, MakeShape);
  table.Add("Size", {1, 1}, MakeSize);
  table.Add("Expand", {2, 2}, MakeExpand);
  table.Add("Tile", {2, 2}, MakeTile);
  table.Add("Identity", {1, 1}, MakeUnary<Identity>);
  table.Add("DepthToSpace", {1, 1}, MakeDepthToSpace);
  table.Add("SpaceToDepth", {1, 1}, MakeSpaceToDepth);
}

}  // namespace tandem::training
