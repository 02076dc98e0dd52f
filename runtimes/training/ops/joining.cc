// Operators that join tensors, or cut and extend them along axes.

#include <algorithm>
#include <limits>

#include <ATen/ATen.h>

#include "runtimes/training/ops/families.h"
#include "runtimes/training/ops/run_checks.h"

namespace tandem::training {
namespace {

using Sizes = std::vector<std::int64_t>;

// So that sums with sizes do not overflow.
constexpr std::int64_t kLargestPad = std::numeric_limits<std::int32_t>::max();

Result<Kernel> MakeConcat(NodeView& node) {
  if (!node.Has("axis")) return Invalid("axis is missing");
  const std::int64_t axis = node.Int("axis", 0);
  return [axis](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    for (const at::Tensor& part : in) {
      Require(part.defined() && part.dim() == in[0].dim(), "inputs must have the same number of dimensions");
    }
    return {at::cat(at::TensorList(in.data(), in.size()), AxisOf(axis, in[0].dim()))};
  };
}

// As even as can be: the last parts are smaller.
Sizes EvenParts(std::int64_t size, std::int64_t count) {
  const std::int64_t part = (size + count - 1) / count;
  Sizes parts;
  for (std::int64_t i = 0; i < count; ++i) {
    parts.push_back(std::min(part, size));
    size -= parts.back();
  }
  return parts;
}

Result<Kernel> MakeSplit(NodeView& node) {
  const std::int64_t axis = node.Int("axis", 0);
  const Sizes attribute = node.Ints("split");
  const std::int64_t count = node.Int("num_outputs", node.outputs());
  if (count != node.outputs()) return Invalid("num_outputs is {}, and {} outputs are there", count, node.outputs());
  const bool uneven = node.Has("num_outputs");
  return [axis, attribute, count, uneven](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    const std::int64_t d = AxisOf(axis, in[0].dim());
    const at::Tensor given = Optional(in, 1);
    Sizes parts = given.defined() ? IntsOf(given, "split") : attribute;
    if (parts.empty() && !given.defined()) {
      Require(uneven || in[0].size(d) % count == 0, "{} cannot be split into {} equal parts", in[0].size(d), count);
      parts = EvenParts(in[0].size(d), count);
    }
    Require(static_cast<std::int64_t>(parts.size()) == count, "{} parts for {} outputs", parts.size(), count);
    return at::split_with_sizes(in[0], parts, d);
  };
}

// Every step-th element from start on, as far as end, both counted as Python does.
at::Tensor SliceAxis(const at::Tensor& x, std::int64_t axis, std::int64_t start, std::int64_t end, std::int64_t step) {
  const std::int64_t size = x.size(axis);
  Require(step != 0, "a step is 0");
  if (start < 0) start += size;
  if (end < 0) end += size;
  // A longer step takes one element as well, and sums with it do not overflow.
  step = std::clamp(step, -size - 1, size + 1);
  if (step > 0) {
    start = std::clamp<std::int64_t>(start, 0, size);
    return x.slice(axis, start, std::clamp<std::int64_t>(end, start, size), step);
  }
  start = std::clamp<std::int64_t>(start, -1, size - 1);
  end = std::clamp<std::int64_t>(end, -1, start);
  const std::int64_t count = (start - end - step - 1) / -step;
  if (count == 0) return x.slice(axis, 0, 0);
  // ATen steps forwards only.
  return x.slice(axis, start + (count - 1) * step, start + 1, -step).flip({axis});
}

at::Tensor Slice(const at::Tensor& x, const Sizes& starts, const Sizes& ends, Sizes axes, Sizes steps) {
  if (axes.empty()) {
    for (std::size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  }
  if (steps.empty()) steps.assign(starts.size(), 1);
  Require(ends.size() == starts.size() && axes.size() == starts.size() && steps.size() == starts.size(),
          "starts, ends, axes and steps are not equally many");
  axes = AxesOf(std::move(axes), x.dim());
  at::Tensor y = x;
  for (std::size_t i = 0; i < starts.size(); ++i) y = SliceAxis(y, axes[i], starts[i], ends[i], steps[i]);
  return y;
}

Result<Kernel> MakeSlice(NodeView& node) {
  if (node.opset() < 10) {
    const Sizes starts = node.Ints("starts");
    const Sizes ends = node.Ints("ends");
    const Sizes axes = node.Ints("axes");
    return [starts, ends, axes](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
      return {Slice(in[0], starts, ends, axes, {})};
    };
  }
  if (!node.HasInput(1) || !node.HasInput(2)) return Invalid("starts or ends are missing");
  return [](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    const at::Tensor axes = Optional(in, 3);
    const at::Tensor steps = Optional(in, 4);
    return {Slice(in[0], IntsOf(in[1], "starts"), IntsOf(in[2], "ends"),
                  axes.defined() ? IntsOf(axes, "axes") : Sizes{}, steps.defined() ? IntsOf(steps, "steps") : Sizes{})};
  };
}

enum class PadMode { kConstant, kReflect, kEdge, kWrap };

Result<PadMode> ReadPadMode(NodeView& node) {
  const std::string mode = node.Text("mode", "constant");
  if (mode == "constant") return PadMode::kConstant;
  if (mode == "reflect") return PadMode::kReflect;
  if (mode == "edge") return PadMode::kEdge;
  if (mode == "wrap") return PadMode::kWrap;
  return Invalid("mode is '{}'", mode);
}

// The axis with elements of its own before and behind it; less than nothing takes some away.
at::Tensor PadAxis(const at::Tensor& x, std::int64_t axis, std::int64_t before, std::int64_t behind, PadMode mode) {
  const std::int64_t size = x.size(axis);
  Require(size + before + behind >= 0, "pads take away more than there is");
  Require(size > 0 || (before <= 0 && behind <= 0), "nothing is there that could be repeated");
  at::Tensor from = at::arange(-before, size + behind, at::kLong);
  if (mode == PadMode::kEdge) {
    from = from.clamp(0, size - 1);
  } else if (mode == PadMode::kWrap) {
    from = from.remainder(size);
  } else {
    const std::int64_t period = std::max<std::int64_t>(2 * (size - 1), 1);
    from = from.remainder(period);
    from = at::minimum(from, from.neg().add(period)).clamp(0, size - 1);
  }
  return x.index_select(axis, from);
}

at::Tensor Pad(const at::Tensor& x, const Sizes& pads, Sizes axes, PadMode mode, const at::Scalar& value) {
  if (axes.empty()) {
    for (std::int64_t d = 0; d < x.dim(); ++d) axes.push_back(d);
  }
  axes = AxesOf(std::move(axes), x.dim());
  Require(pads.size() == 2 * axes.size(), "pads has {} values for {} axes", pads.size(), axes.size());
  for (const std::int64_t pad : pads) {
    Require(pad >= -kLargestPad && pad <= kLargestPad, "pads has {}", pad);
  }
  Sizes reversed(2 * static_cast<std::size_t>(x.dim()), 0);
  at::Tensor y = x;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t before = pads[i], behind = pads[i + axes.size()];
    if (before == 0 && behind == 0) continue;
    const auto from_last = static_cast<std::size_t>(x.dim() - 1 - axes[i]);
    reversed[2 * from_last] = before;
    reversed[2 * from_last + 1] = behind;
    if (mode != PadMode::kConstant) y = PadAxis(y, axes[i], before, behind, mode);
  }
  return mode == PadMode::kConstant ? at::constant_pad_nd(x, reversed, value) : y;
}

Result<Kernel> MakePad(NodeView& node) {
  TANDEM_ASSIGN(const PadMode mode, ReadPadMode(node));
  if (node.opset() < 11) {
    const Sizes pads = node.Ints("pads");
    const double value = node.Float("value", 0.0);
    return [mode, pads, value](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
      return {Pad(in[0], pads, {}, mode, value)};
    };
  }
  if (!node.HasInput(1)) return Invalid("pads are missing");
  return [mode](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    const at::Tensor value = Optional(in, 2);
    const at::Tensor axes = Optional(in, 3);
    Require(!value.defined() || value.numel() == 1, "the value to pad with must be one");
    return {Pad(in[0], IntsOf(in[1], "pads"), axes.defined() ? IntsOf(axes, "axes") : Sizes{}, mode,
                value.defined() ? value.item() : at::Scalar(0))};
  };
}

// Each axis is brought to the wanted size about its middle.
Result<Kernel> MakeCenterCropPad(NodeView& node) {
  const Sizes attribute = node.Ints("axes");
  return [attribute](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    const Sizes shape = IntsOf(in[1], "the shape");
    Sizes axes = attribute;
    for (std::size_t i = 0; attribute.empty() && i < shape.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
    axes = AxesOf(std::move(axes), in[0].dim());
    Require(axes.size() == shape.size(), "the shape has {} values for {} axes", shape.size(), axes.size());
    Sizes pads(2 * axes.size());
    for (std::size_t i = 0; i < axes.size(); ++i) {
      Require(shape[i] >= 0, "the shape has {}", shape[i]);
      const std::int64_t more = shape[i] - in[0].size(axes[i]);
      pads[i] = more >= 0 ? more / 2 : -((-more) / 2);
      pads[i + axes.size()] = more - pads[i];
    }
    return {Pad(in[0], pads, axes, PadMode::kConstant, 0)};
  };
}

}  // namespace

void AddJoiningOps(OpTable& table) {
  table.Add("Concat", {1, kMany}, MakeConcat);
  table.Add("Split", {1, 2, kMany}, MakeSplit);
  table.Add("Slice", {1, 5}, MakeSlice);
  table.Add("Pad", {1, 4}, MakePad);
  table.Add("CenterCropPad", {2, 2}, MakeCenterCropPad);
}

}  // namespace tandem::training
