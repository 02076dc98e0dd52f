// Convolutions over one to three dimensions of space.

#include <algorithm>

#include <ATen/ATen.h>

#include "runtimes/training/ops/families.h"
#include "runtimes/training/ops/run_checks.h"
#include "runtimes/training/ops/window.h"

namespace tandem::training {
namespace {

constexpr Spatial kNone{};

Result<Kernel> MakeConv(NodeView& node) {
  TANDEM_ASSIGN(const Window window, Window::Read(node));
  const std::int64_t groups = node.Int("group", 1);
  if (groups < 1) return Invalid("group is {}", groups);
  return [window, groups](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
    const at::Tensor& x = in[0];
    const at::Tensor& weight = in[1];
    const std::size_t space = window.SpaceOf(x);
    Require(weight.dim() == x.dim(), "the weight has {} dimensions, the input {}", weight.dim(), x.dim());
    const at::IntArrayRef kernel = weight.sizes().slice(2);
    window.CheckKernel(kernel);
    const Placement place = window.Place(x.sizes().slice(2), kernel);
    const bool symmetric = place.begin == place.end;
    return {
        at::convolution(symmetric ? x : PadSpace(x, place.begin, place.end, 0), weight, Optional(in, 2),
                        window.strides(space), at::IntArrayRef(symmetric ? place.begin.data() : kNone.data(), space),
                        window.dilations(space), /*transposed=*/false, at::IntArrayRef(kNone.data(), space), groups)};
  };
}

struct TransposedForm {
  Window window;
  std::vector<std::int64_t> output_shape;
  Spatial output_padding{};
  std::int64_t groups = 1;
};

// What a transposed convolution takes off both ends of what it makes, and how much more than that it makes at the end.
struct Trim {
  Spatial begin{};
  Spatial end{};
  Spatial more{};
};

Trim TrimOf(const TransposedForm& form, at::IntArrayRef sizes, at::IntArrayRef kernel) {
  const Window& window = form.window;
  Trim trim{.begin = window.pads_begin(), .end = window.pads_end(), .more = form.output_padding};
  if (form.output_shape.empty() && !window.keeps_size()) return trim;
  const std::size_t space = sizes.size();
  Require(form.output_shape.empty() || form.output_shape.size() == space, "output_shape is for {} dimensions",
          form.output_shape.size());
  for (std::size_t d = 0; d < space; ++d) {
    const std::int64_t stride = window.strides(space)[d];
    const std::int64_t wanted = form.output_shape.empty() ? sizes[d] * stride : form.output_shape[d];
    const std::int64_t reach = (kernel[d] - 1) * window.dilations(space)[d] + 1;
    const std::int64_t total = stride * (sizes[d] - 1) + trim.more[d] + reach - wanted;
    Require(wanted >= 0 && total >= -stride, "the output cannot be {} long", wanted);
    if (total < 0) trim.more[d] -= total;
    const std::int64_t off = std::max<std::int64_t>(total, 0);
    trim.begin[d] = window.same_upper() ? off / 2 : off - off / 2;
    trim.end[d] = off - trim.begin[d];
  }
  return trim;
}

at::Tensor ConvTranspose(const TransposedForm& form, std::span<const at::Tensor> in) {
  const at::Tensor& x = in[0];
  const at::Tensor& weight = in[1];
  const std::size_t space = form.window.SpaceOf(x);
  Require(weight.dim() == x.dim(), "the weight has {} dimensions, the input {}", weight.dim(), x.dim());
  const at::IntArrayRef kernel = weight.sizes().slice(2);
  form.window.CheckKernel(kernel);
  const Trim trim = TrimOf(form, x.sizes().slice(2), kernel);
  Spatial both{};
  for (std::size_t d = 0; d < space; ++d) both[d] = std::min(trim.begin[d], trim.end[d]);
  at::Tensor y = at::convolution(x, weight, Optional(in, 2), form.window.strides(space),
                                 at::IntArrayRef(both.data(), space), form.window.dilations(space), /*transposed=*/true,
                                 at::IntArrayRef(trim.more.data(), space), form.groups);
  for (std::size_t d = 0; d < space; ++d) {
    const std::int64_t left = trim.begin[d] - both[d];
    const std::int64_t right = trim.end[d] - both[d];
    if (left == 0 && right == 0) continue;
    const auto axis = static_cast<std::int64_t>(d) + 2;
    Require(left + right <= y.size(axis), "pads take away more than there is");
    y = y.narrow(axis, left, y.size(axis) - left - right);
  }
  return y;
}

Result<Kernel> MakeConvTranspose(NodeView& node) {
  TransposedForm form;
  TANDEM_ASSIGN(form.window, Window::Read(node));
  form.groups = node.Int("group", 1);
  if (form.groups < 1) return Invalid("group is {}", form.groups);
  form.output_shape = node.Ints("output_shape");
  const auto padding = node.Ints("output_padding");
  if (padding.size() > kMaxSpace) {
    return Fail(ErrorCode::kUnsupported, "windows of {} dimensions are not supported", padding.size());
  }
  for (std::size_t d = 0; d < padding.size(); ++d) {
    if (padding[d] < 0 || padding[d] > (1 << 20)) return Invalid("output_padding has {}", padding[d]);
    form.output_padding[d] = padding[d];
  }
  return [form](const RunMode&, std::span<const at::Tensor> in) -> Tensors { return {ConvTranspose(form, in)}; };
}

}  // namespace

void AddConvolutionOps(OpTable& table) {
  table.Add("Conv", {2, 3}, MakeConv);
  table.Add("ConvTranspose", {2, 3}, MakeConvTranspose);
}

}  // namespace tandem::training
