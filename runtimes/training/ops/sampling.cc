// Operators that read an image at other places, or put one together from pieces.

#include <limits>

#include <ATen/ATen.h>

#include "runtimes/training/ops/families.h"
#include "runtimes/training/ops/run_checks.h"
#include "runtimes/training/ops/window.h"

namespace tandem::training {
namespace {

using Sizes = std::vector<std::int64_t>;

// ATen numbers the ways: 0 bilinear, 1 nearest, 2 bicubic; 0 zeros, 1 border, 2 reflection.
Result<Kernel> MakeGridSample(NodeView& node) {
  const std::string mode = node.Text("mode", "linear");
  const std::string padding = node.Text("padding_mode", "zeros");
  const bool corners = node.Int("align_corners", 0) != 0;
  const std::int64_t mode_number = mode == "linear" || mode == "bilinear" ? 0
                                   : mode == "nearest"                    ? 1
                                   : mode == "cubic" || mode == "bicubic" ? 2
                                                                          : -1;
  const std::int64_t padding_number = padding == "zeros"        ? 0
                                      : padding == "border"     ? 1
                                      : padding == "reflection" ? 2
                                                                : -1;
  if (mode_number < 0) return Invalid("mode is '{}'", mode);
  if (padding_number < 0) return Invalid("padding_mode is '{}'", padding);
  return [mode_number, padding_number, corners](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    if (in[0].dim() != 4 && (in[0].dim() != 5 || mode_number == 2)) {
      throw UnsupportedError("images of one to three dimensions are not sampled in this mode");
    }
    return {at::grid_sampler(in[0], in[1], mode_number, padding_number, corners)};
  };
}

Result<Kernel> MakeAffineGrid(NodeView& node) {
  const bool corners = node.Int("align_corners", 0) != 0;
  return [corners](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    const Sizes size = IntsOf(in[1], "size");
    Require(size.size() == 4 || size.size() == 5, "size has {} values", size.size());
    const auto space = static_cast<std::int64_t>(size.size()) - 2;
    Require(in[0].dim() == 3 && in[0].size(0) == size[0] && in[0].size(1) == space && in[0].size(2) == space + 1,
            "theta does not fit the size");
    for (const std::int64_t each : size) Require(each > 0, "size has {}", each);
    return {at::affine_grid_generator(in[0], size, corners)};
  };
}

struct Col2ImForm {
  Sizes dilations;
  Sizes pads;
  Sizes strides;
};

// Where along one axis of the padded image each (place in block, block) lies.
at::Tensor Places(std::int64_t block, std::int64_t dilation, std::int64_t stride, std::int64_t padded) {
  const std::int64_t reach = (block - 1) * dilation + 1;
  Require(padded >= reach, "a block is larger than the image");
  const std::int64_t count = (padded - reach) / stride + 1;
  return at::arange(block, at::kLong).mul(dilation).unsqueeze(1).add(at::arange(count, at::kLong).mul(stride));
}

at::Tensor Col2Im(const Col2ImForm& form, const at::Tensor& x, const Sizes& image, const Sizes& block) {
  const std::size_t space = image.size();
  Require(space >= 1 && block.size() == space && x.dim() == 3, "image and block are for {} and {} dimensions", space,
          block.size());
  const auto at_axis = [&](const Sizes& values, std::size_t d, std::int64_t absent) {
    Require(values.empty() || values.size() > d, "an attribute is for too few dimensions");
    return values.empty() ? absent : values[d];
  };
  Require(form.pads.empty() || form.pads.size() == 2 * space, "pads has {} values", form.pads.size());
  Sizes padded;
  at::Tensor places = at::zeros({1, 1}, at::kLong);
  std::int64_t area = 1;
  std::int64_t block_area = 1;
  for (std::size_t d = 0; d < space; ++d) {
    constexpr std::int64_t kLargest = std::numeric_limits<std::int16_t>::max();
    Require(image[d] > 0 && image[d] <= kLargest && block[d] > 0 && block[d] <= kLargest,
            "image or block is out of range");
    padded.push_back(image[d] + at_axis(form.pads, d, 0) + at_axis(form.pads, d + space, 0));
    const at::Tensor along = Places(block[d], at_axis(form.dilations, d, 1), at_axis(form.strides, d, 1), padded[d]);
    // [in block, blocks] of the axes so far, and of this one.
    places = places.mul(padded[d]).unsqueeze(1).unsqueeze(3).add(along.unsqueeze(0).unsqueeze(2));
    places = places.reshape({places.size(0) * places.size(1), places.size(2) * places.size(3)});
    area *= padded[d];
    block_area *= block[d];
  }
  Require(x.size(1) % block_area == 0 && x.size(2) == places.size(1), "the columns do not fit image and block");
  const std::int64_t channels = x.size(1) / block_area;
  at::Tensor y = at::zeros({x.size(0), channels, area}, x.options())
                     .index_add(2, places.flatten(), x.reshape({x.size(0), channels, -1}));
  padded.insert(padded.begin(), {x.size(0), channels});
  y = y.reshape(padded);
  for (std::size_t d = 0; d < space; ++d) {
    y = y.narrow(static_cast<std::int64_t>(d) + 2, at_axis(form.pads, d, 0), image[d]);
  }
  return y;
}

Result<Kernel> MakeCol2Im(NodeView& node) {
  const Col2ImForm form{
      .dilations = node.Ints("dilations"), .pads = node.Ints("pads"), .strides = node.Ints("strides")};
  for (const auto* values : {&form.dilations, &form.strides}) {
    for (const std::int64_t value : *values) {
      if (value < 1 || value > std::numeric_limits<std::int16_t>::max()) return Invalid("an attribute has {}", value);
    }
  }
  for (const std::int64_t pad : form.pads) {
    if (pad < 0 || pad > std::numeric_limits<std::int16_t>::max()) return Invalid("pads has {}", pad);
  }
  return [form](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    return {Col2Im(form, in[0], IntsOf(in[1], "image_shape"), IntsOf(in[2], "block_shape"))};
  };
}

// Each value goes back to the place that MaxPool took it from.
Result<Kernel> MakeMaxUnpool(NodeView& node) {
  TANDEM_ASSIGN(const Window window, Window::Read(node));
  if (!window.has_kernel()) return Invalid("kernel_shape is missing");
  return [window](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    const at::Tensor& x = in[0];
    const std::size_t space = window.SpaceOf(x);
    Require(in[1].sizes() == x.sizes(), "indices and values are not alike");
    Sizes shape{x.size(0), x.size(1)};
    std::int64_t elements = x.size(0) * x.size(1);
    for (std::size_t d = 0; d < space; ++d) {
      shape.push_back((x.size(static_cast<std::int64_t>(d) + 2) - 1) * window.strides(space)[d] +
                      window.kernel(space)[d] - window.pads_begin()[d] - window.pads_end()[d]);
      Require(shape.back() > 0 && shape.back() < (1 << 20), "the output would be {} long", shape.back());
      elements *= shape.back();
    }
    const at::Tensor y =
        at::zeros({elements}, x.options()).scatter(0, in[1].to(at::kLong).flatten(), x.flatten()).reshape(shape);
    const at::Tensor given = Optional(in, 2);
    if (!given.defined()) return {y};
    const Sizes wanted = IntsOf(given, "output_shape");
    Require(wanted.size() == shape.size(), "output_shape has {} values", wanted.size());
    Sizes pads;
    for (std::size_t d = shape.size(); d-- > 0;) {
      Require(wanted[d] >= 0 && wanted[d] < (1 << 20), "output_shape has {}", wanted[d]);
      pads.insert(pads.end(), {0, wanted[d] - shape[d]});
    }
    return {at::constant_pad_nd(y, pads, 0)};
  };
}

}  // namespace

void AddSamplingOps(OpTable& table) {
  table.Add("GridSample", {2, 2}, MakeGridSample);
  table.Add("AffineGrid", {2, 2}, MakeAffineGrid);
  table.Add("Col2Im", {3, 3}, MakeCol2Im);
  table.Add("MaxUnpool", {2, 3}, MakeMaxUnpool);
}

}  // namespace tandem::training
