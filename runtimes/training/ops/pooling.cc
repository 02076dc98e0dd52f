// Pools: the largest, the mean or the norm of what lies under a window.

#include <limits>

#include <ATen/ATen.h>

#include "runtimes/training/ops/families.h"
#include "runtimes/training/ops/run_checks.h"
#include "runtimes/training/ops/window.h"

namespace tandem::training {
namespace {

constexpr Spatial kNone{};

// Whether ATen can add the padding itself: as much on both sides, and not more than half of the window.
bool PadsItself(const Placement& place, at::IntArrayRef kernel) {
  if (place.begin != place.end) return false;
  for (std::size_t d = 0; d < kernel.size(); ++d) {
    if (place.begin[d] > kernel[d] / 2) return false;
  }
  return true;
}

// What must be added at the end for the last window to lie on something.
Spatial EndOf(const Window& window, const Placement& place, at::IntArrayRef sizes, at::IntArrayRef kernel) {
  const std::size_t space = sizes.size();
  Spatial end{};
  for (std::size_t d = 0; d < space; ++d) {
    const std::int64_t reach = (kernel[d] - 1) * window.dilations(space)[d] + 1;
    end[d] =
        std::max<std::int64_t>(0, (place.count[d] - 1) * window.strides(space)[d] + reach - sizes[d] - place.begin[d]);
  }
  return end;
}

Result<Window> ReadPool(NodeView& node) {
  TANDEM_ASSIGN(Window window, Window::Read(node));
  if (!window.has_kernel()) return Invalid("kernel_shape is missing");
  return window;
}

at::Scalar Lowest(at::ScalarType type) {
  if (at::isFloatingType(type)) return -std::numeric_limits<double>::infinity();
  return type == at::kChar ? std::int64_t{std::numeric_limits<std::int8_t>::min()} : std::int64_t{0};
}

// The pool over an input that is padded as far as ATen's own `padding` does not do it.
std::pair<at::Tensor, at::Tensor> MaxWithIndices(const Window& window, const at::Tensor& x, at::IntArrayRef padding,
                                                 bool ceil_mode) {
  const std::size_t n = padding.size();
  const auto kernel = window.kernel(n), strides = window.strides(n), dilations = window.dilations(n);
  auto [values, indices] = n == 1   ? at::max_pool1d_with_indices(x, kernel, strides, padding, dilations, ceil_mode)
                           : n == 2 ? at::max_pool2d_with_indices(x, kernel, strides, padding, dilations, ceil_mode)
                                    : at::max_pool3d_with_indices(x, kernel, strides, padding, dilations, ceil_mode);
  return {values, indices};
}

at::Tensor MaxPlain(const Window& window, const at::Tensor& x, at::IntArrayRef padding, bool ceil_mode) {
  const std::size_t n = padding.size();
  const auto kernel = window.kernel(n), strides = window.strides(n), dilations = window.dilations(n);
  return n == 1   ? at::max_pool1d(x, kernel, strides, padding, dilations, ceil_mode)
         : n == 2 ? at::max_pool2d(x, kernel, strides, padding, dilations, ceil_mode)
                  : at::max_pool3d(x, kernel, strides, padding, dilations, ceil_mode);
}

// ATen counts places in the plane of space that it saw, which had `begin` in front; ONNX counts them in the whole
// input.
at::Tensor PlacesInInput(const at::Tensor& indices, const at::Tensor& x, at::IntArrayRef seen, const Spatial& begin,
                         bool column_major) {
  const std::size_t space = seen.size();
  at::Tensor rest = indices;
  at::Tensor place = at::zeros_like(indices);
  std::int64_t step = 1;
  std::int64_t plane = 1;
  for (std::size_t d = 0; d < space; ++d) plane *= x.size(static_cast<std::int64_t>(d) + 2);
  if (column_major) step = plane;
  for (std::size_t d = space; d-- > 0;) {
    const std::int64_t size = x.size(static_cast<std::int64_t>(d) + 2);
    if (column_major) step /= size;
    const at::Tensor at_axis = rest.remainder(seen[d]).sub(begin[d]).clamp(0, size - 1);
    place = place.add(at_axis.mul(step));
    if (!column_major) step *= size;
    rest = rest.div(seen[d], "trunc");
  }
  std::vector<std::int64_t> planes(static_cast<std::size_t>(x.dim()), 1);
  planes[0] = x.size(0);
  planes[1] = x.size(1);
  return place.add(at::arange(x.size(0) * x.size(1), indices.options()).mul(plane).reshape(planes));
}

Tensors MaxPool(const Window& window, const at::Tensor& given, bool with_indices, bool column_major) {
  const std::size_t space = window.SpaceOf(given);
  const auto kernel = window.kernel(space);
  const Placement place = window.Place(given.sizes().slice(2), kernel);
  const bool whole = at::isIntegralType(given.scalar_type(), /*includeBool=*/false);
  // Of whole numbers ONNX allows those of one byte only, which a float holds exactly.
  at::Tensor x = whole ? given.to(at::kFloat) : given;
  Spatial begin{};
  Spatial padding = place.begin;
  bool ceil_mode = window.ceil_mode() && !window.keeps_size();
  if (!PadsItself(place, kernel)) {
    begin = place.begin;
    x = PadSpace(x, begin, EndOf(window, place, x.sizes().slice(2), kernel), Lowest(x.scalar_type()));
    padding = kNone;
    ceil_mode = false;
  }
  const at::IntArrayRef pads(padding.data(), space);
  if (!with_indices) return {MaxPlain(window, x, pads, ceil_mode).to(given.scalar_type())};
  auto [values, indices] = MaxWithIndices(window, x, pads, ceil_mode);
  return {values.to(given.scalar_type()), PlacesInInput(indices, given, x.sizes().slice(2), begin, column_major)};
}

Result<Kernel> MakeMaxPool(NodeView& node) {
  TANDEM_ASSIGN(const Window window, ReadPool(node));
  const bool column_major = node.Int("storage_order", 0) != 0;
  const bool with_indices = node.HasOutput(1);
  return [window, column_major, with_indices](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    return MaxPool(window, in[0], with_indices, column_major);
  };
}

at::Tensor AveragePlain(const Window& window, const at::Tensor& x, at::IntArrayRef padding, bool ceil_mode,
                        bool count_padding, std::optional<std::int64_t> divisor) {
  const std::size_t n = padding.size();
  const auto kernel = window.kernel(n), strides = window.strides(n);
  if (n == 1) {
    // ATen's own has no divisor.
    return at::avg_pool2d(x.unsqueeze(2), {1, kernel[0]}, {1, strides[0]}, {0, padding[0]}, ceil_mode, count_padding,
                          divisor)
        .squeeze(2);
  }
  return n == 2 ? at::avg_pool2d(x, kernel, strides, padding, ceil_mode, count_padding, divisor)
                : at::avg_pool3d(x, kernel, strides, padding, ceil_mode, count_padding, divisor);
}

// The sum under each window of an input that is padded already.
at::Tensor WindowSums(const Window& window, const at::Tensor& padded) {
  const std::size_t space = window.SpaceOf(padded);
  if (!window.is_dilated()) {
    return AveragePlain(window, padded, at::IntArrayRef(kNone.data(), space), false, true, 1);
  }
  at::Tensor windows = padded;
  std::vector<std::int64_t> inside;
  for (std::size_t d = 0; d < space; ++d) {
    const std::int64_t dilation = window.dilations(space)[d];
    const std::int64_t reach = (window.kernel(space)[d] - 1) * dilation + 1;
    windows =
        windows.unfold(static_cast<std::int64_t>(d) + 2, reach, window.strides(space)[d]).slice(-1, 0, reach, dilation);
    inside.push_back(-1 - static_cast<std::int64_t>(d));
  }
  return windows.sum(inside);
}

at::Tensor AveragePool(const Window& window, const at::Tensor& x, bool count_padding) {
  const std::size_t space = window.SpaceOf(x);
  const auto kernel = window.kernel(space);
  const Placement place = window.Place(x.sizes().slice(2), kernel);
  if (!window.is_dilated() && PadsItself(place, kernel)) {
    const bool ceil_mode = window.ceil_mode() && !window.keeps_size();
    return AveragePlain(window, x, at::IntArrayRef(place.begin.data(), space), ceil_mode, count_padding, std::nullopt);
  }
  const Spatial end = EndOf(window, place, x.sizes().slice(2), kernel);
  std::vector<std::int64_t> one_plane{1, 1};
  for (std::size_t d = 0; d < space; ++d) one_plane.push_back(x.size(static_cast<std::int64_t>(d) + 2));
  at::Tensor counted = at::ones(one_plane, x.options());
  if (count_padding) {
    // What lies beyond the padding, where only rounding up has led a window, does not count.
    Spatial within{};
    Spatial beyond{};
    for (std::size_t d = 0; d < space; ++d) {
      within[d] = std::min(end[d], place.end[d]);
      beyond[d] = end[d] - within[d];
    }
    counted = PadSpace(PadSpace(counted, place.begin, within, 1), kNone, beyond, 0);
  } else {
    counted = PadSpace(counted, place.begin, end, 0);
  }
  return WindowSums(window, PadSpace(x, place.begin, end, 0)).div(WindowSums(window, counted));
}

Result<Kernel> MakeAveragePool(NodeView& node) {
  TANDEM_ASSIGN(const Window window, ReadPool(node));
  const bool count_padding = node.Int("count_include_pad", 0) != 0;
  return [window, count_padding](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    return {AveragePool(window, in[0], count_padding)};
  };
}

Result<Kernel> MakeLpPool(NodeView& node) {
  TANDEM_ASSIGN(const Window window, ReadPool(node));
  const auto p = static_cast<double>(node.Int("p", 2));
  if (p < 1) return Invalid("p is {}", p);
  return [window, p](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    const at::Tensor& x = in[0];
    const std::size_t space = window.SpaceOf(x);
    const auto kernel = window.kernel(space);
    const Placement place = window.Place(x.sizes().slice(2), kernel);
    const Spatial end = EndOf(window, place, x.sizes().slice(2), kernel);
    return {WindowSums(window, PadSpace(x.abs().pow(p), place.begin, end, 0)).pow(1.0 / p)};
  };
}

std::vector<std::int64_t> SpaceAxes(const at::Tensor& x) {
  Require(x.dim() >= 2, "the input has {} dimensions", x.dim());
  std::vector<std::int64_t> axes;
  for (std::int64_t d = 2; d < x.dim(); ++d) axes.push_back(d);
  return axes;
}

Result<Kernel> MakeGlobalAveragePool(NodeView&) {
  return [](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    const auto axes = SpaceAxes(in[0]);
    return {axes.empty() ? in[0] : at::mean(in[0], axes, /*keepdim=*/true)};
  };
}

Result<Kernel> MakeGlobalMaxPool(NodeView&) {
  return [](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    const auto axes = SpaceAxes(in[0]);
    return {axes.empty() ? in[0] : at::amax(in[0], axes, /*keepdim=*/true)};
  };
}

Result<Kernel> MakeGlobalLpPool(NodeView& node) {
  const auto p = static_cast<double>(node.Int("p", 2));
  if (p < 1) return Invalid("p is {}", p);
  return [p](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    const auto axes = SpaceAxes(in[0]);
    return {axes.empty() ? in[0].abs() : at::linalg_vector_norm(in[0], p, axes, /*keepdim=*/true)};
  };
}

}  // namespace

void AddPoolingOps(OpTable& table) {
  table.Add("MaxPool", {1, 1, 2}, MakeMaxPool);
  table.Add("AveragePool", {1, 1}, MakeAveragePool);
  table.Add("LpPool", {1, 1}, MakeLpPool);
  table.Add("GlobalAveragePool", {1, 1}, MakeGlobalAveragePool);
  table.Add("GlobalMaxPool", {1, 1}, MakeGlobalMaxPool);
  table.Add("GlobalLpPool", {1, 1}, MakeGlobalLpPool);
}

}  // namespace tandem::training
