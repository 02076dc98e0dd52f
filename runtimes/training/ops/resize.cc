// Resize and Upsample.

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include "runtimes/training/ops/families.h"
#include "runtimes/training/ops/interpolation.h"
#include "runtimes/training/ops/run_checks.h"

namespace tandem::training {
namespace {

using Coordinates = Interpolation::Coordinates;
using Mode = Interpolation::Mode;
using Axes = std::vector<AxisResize>;

// Of an axis; what is asked for by mistake shall not eat up all memory.
constexpr std::int64_t kLongest = 1 << 24;

enum class Aspect { kStretch, kNotLarger, kNotSmaller };

struct ResizeForm {
  Interpolation how;
  Aspect aspect = Aspect::kStretch;
  std::vector<std::int64_t> axes;  // Empty: all.
};

std::vector<double> NumbersOf(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.numel() == 0) return {};
  Require(tensor.dim() == 1 && at::isFloatingType(tensor.scalar_type()),
          "scales and roi must be fractions in one dimension");
  const at::Tensor values = tensor.detach().to(at::kDouble).contiguous();
  const auto* data = values.const_data_ptr<double>();
  return {data, data + values.numel()};
}

// Every axis as it is.
Axes Unchanged(const at::Tensor& x) {
  Axes axes;
  for (const std::int64_t size : x.sizes()) axes.push_back({.from = size, .to = size});
  return axes;
}

std::vector<std::int64_t> NamedAxes(const std::vector<std::int64_t>& axes, const at::Tensor& x, std::size_t count) {
  std::vector<std::int64_t> named = axes;
  for (std::int64_t d = 0; axes.empty() && d < x.dim(); ++d) named.push_back(d);
  Require(named.size() == count, "{} scales or sizes for {} axes", count, named.size());
  return AxesOf(std::move(named), x.dim());
}

void Scale(AxisResize& axis, double scale) {
  const double to = std::floor(static_cast<double>(axis.from) * scale);
  Require(scale > 0 && to >= 0 && to <= static_cast<double>(kLongest), "a scale is {}", scale);
  axis.scale = scale;
  axis.to = static_cast<std::int64_t>(to);
}

void SetSizes(Axes& all, const std::vector<std::int64_t>& named, const std::vector<std::int64_t>& sizes,
              Aspect aspect) {
  double common = 0;
  for (std::size_t i = 0; i < named.size(); ++i) {
    AxisResize& axis = all[static_cast<std::size_t>(named[i])];
    Require(sizes[i] >= 1 && sizes[i] <= kLongest && axis.from >= 1, "a size is {}", sizes[i]);
    axis.to = sizes[i];
    axis.scale = static_cast<double>(sizes[i]) / static_cast<double>(axis.from);
    if (i == 0 || (aspect == Aspect::kNotLarger ? axis.scale < common : axis.scale > common)) common = axis.scale;
  }
  if (aspect == Aspect::kStretch) return;
  for (const std::int64_t d : named) {
    AxisResize& axis = all[static_cast<std::size_t>(d)];
    axis.scale = common;
    axis.to = static_cast<std::int64_t>(std::floor(static_cast<double>(axis.from) * common + 0.5));
  }
}

// ATen's own ways for images, where they compute the same. Undefined when they do not.
at::Tensor ResizeImage(const at::Tensor& x, const Axes& axes, const Interpolation& how) {
  if (x.dim() != 4 || axes[0].changes(how) || axes[1].changes(how) || how.antialias || how.exclude_outside) return {};
  const AxisResize& h = axes[2];
  const AxisResize& w = axes[3];
  const auto exact = [](const AxisResize& a) {
    return std::abs(static_cast<double>(a.from) * a.scale - static_cast<double>(a.to)) < 1e-6;
  };
  if (how.mode == Mode::kLinear) {
    const bool corners = how.coordinates == Coordinates::kAlignCorners && exact(h) && exact(w);
    const bool half = how.coordinates == Coordinates::kHalfPixel ||
                      (how.coordinates == Coordinates::kPytorchHalfPixel && h.to > 1 && w.to > 1);
    if (corners || half) return at::upsample_bilinear2d(x, {h.to, w.to}, corners, h.scale, w.scale);
  }
  if (how.mode == Mode::kNearest) {
    const auto stretches = [](const AxisResize& a) {
      return a.to == a.from * std::llround(a.scale) && a.scale == std::round(a.scale);
    };
    const bool floors = how.coordinates == Coordinates::kAsymmetric && how.nearest == Interpolation::Nearest::kFloor;
    const bool rounds =
        how.coordinates == Coordinates::kHalfPixel && how.nearest == Interpolation::Nearest::kRoundPreferFloor;
    // With whole factors both take each element equally often.
    if ((floors || rounds) && stretches(h) && stretches(w))
      return at::upsample_nearest2d(x, {h.to, w.to}, h.scale, w.scale);
  }
  return {};
}

at::Tensor Resize(const at::Tensor& x, const Axes& axes, const Interpolation& how) {
  const bool floating = at::isFloatingType(x.scalar_type());
  if (!floating && how.mode != Mode::kNearest) {
    throw UnsupportedError("whole numbers are resized to the nearest only");
  }
  if (floating && x.numel() > 0) {
    const at::Tensor image = ResizeImage(x, axes, how);
    if (image.defined()) return image;
  }
  at::Tensor y = x;
  for (std::size_t d = 0; d < axes.size(); ++d) {
    if (!axes[d].changes(how)) continue;
    Require(axes[d].from > 0, "an empty axis cannot be resized");
    y = ResizeAxis(y, static_cast<std::int64_t>(d), axes[d], how);
  }
  return y;
}

// Inputs from opset 11 on: X, roi, scales, sizes.
at::Tensor ResizeByInputs(const ResizeForm& form, std::span<const at::Tensor> in) {
  const at::Tensor& x = in[0];
  const std::vector<double> scales = NumbersOf(Optional(in, 2));
  const at::Tensor sizes_given = Optional(in, 3);
  Axes axes = Unchanged(x);
  std::vector<std::int64_t> named;
  if (!scales.empty()) {
    named = NamedAxes(form.axes, x, scales.size());
    for (std::size_t i = 0; i < named.size(); ++i) Scale(axes[static_cast<std::size_t>(named[i])], scales[i]);
  } else {
    Require(sizes_given.defined(), "neither scales nor sizes are given");
    const auto sizes = IntsOf(sizes_given, "sizes");
    named = NamedAxes(form.axes, x, sizes.size());
    SetSizes(axes, named, sizes, form.aspect);
  }
  if (form.how.coordinates == Coordinates::kTfCropAndResize) {
    const std::vector<double> roi = NumbersOf(Optional(in, 1));
    Require(roi.size() == 2 * named.size(), "roi has {} values for {} axes", roi.size(), named.size());
    for (const double bound : roi) Require(std::abs(bound) < 1e9, "roi has {}", bound);
    for (std::size_t i = 0; i < named.size(); ++i) {
      axes[static_cast<std::size_t>(named[i])].roi_start = roi[i];
      axes[static_cast<std::size_t>(named[i])].roi_end = roi[i + named.size()];
    }
  }
  return Resize(x, axes, form.how);
}

at::Tensor ResizeByScales(const Interpolation& how, const at::Tensor& x, const std::vector<double>& scales) {
  Require(static_cast<std::int64_t>(scales.size()) == x.dim(), "{} scales for {} dimensions", scales.size(), x.dim());
  Axes axes = Unchanged(x);
  for (std::size_t d = 0; d < axes.size(); ++d) Scale(axes[d], scales[d]);
  return Resize(x, axes, how);
}

Result<Kernel> MakeResize(NodeView& node) {
  ResizeForm form;
  TANDEM_ASSIGN(form.how, Interpolation::Read(node));
  if (node.opset() < 11) {
    if (!node.HasInput(1)) return Invalid("scales are missing");
    return [form](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
      return {ResizeByScales(form.how, in[0], NumbersOf(in[1]))};
    };
  }
  form.axes = node.Ints("axes");
  const std::string aspect = node.Text("keep_aspect_ratio_policy", "stretch");
  if (aspect != "stretch" && aspect != "not_larger" && aspect != "not_smaller") {
    return Invalid("keep_aspect_ratio_policy is '{}'", aspect);
  }
  form.aspect = aspect == "stretch"      ? Aspect::kStretch
                : aspect == "not_larger" ? Aspect::kNotLarger
                                         : Aspect::kNotSmaller;
  return [form](const RunMode&, std::span<const at::Tensor> in) -> Tensors { return {ResizeByInputs(form, in)}; };
}

// Scales are an attribute before opset 9, and an input in opset 9.
Result<Kernel> MakeUpsample(NodeView& node) {
  if (node.opset() > 9) return Invalid("opset 10 and later have Resize in its place");
  TANDEM_ASSIGN(const Interpolation how, Interpolation::Read(node));
  const std::vector<double> attribute = node.Floats("scales");
  return [how, attribute](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    const at::Tensor given = Optional(in, 1);
    return {ResizeByScales(how, in[0], given.defined() ? NumbersOf(given) : attribute)};
  };
}

}  // namespace

void AddResizeOps(OpTable& table) {
  table.Add("Resize", {1, 4}, MakeResize);
  table.Add("Upsample", {1, 2}, MakeUpsample);
}

}  // namespace tandem::training
