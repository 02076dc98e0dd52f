#include "runtimes/training/ops/window.h"

#include <algorithm>
#include <limits>

#include <ATen/ATen.h>

#include "api/base/format.h"
#include "runtimes/training/ops/run_checks.h"

namespace tandem::training {
namespace {

// So that sums and products of two of them do not overflow.
constexpr std::int64_t kLargest = std::numeric_limits<std::int32_t>::max();

}  // namespace

Status Window::NoteSpace(std::string_view name, std::size_t space) {
  if (space > kMaxSpace) return Fail(ErrorCode::kUnsupported, "windows of {} dimensions are not supported", space);
  if (space_ != 0 && space_ != space)
    return Invalid("{} is for {} dimensions, another attribute for {}", name, space, space_);
  space_ = space;
  return {};
}

Status Window::ReadSizes(NodeView& node, std::string_view name, Spatial& values) {
  const auto given = node.Ints(name);
  if (given.empty()) return {};
  TANDEM_TRY(NoteSpace(name, given.size()));
  for (std::size_t d = 0; d < given.size(); ++d) {
    if (given[d] < 1 || given[d] > kLargest) return Invalid("{} has {}", name, given[d]);
    values[d] = given[d];
  }
  return {};
}

Status Window::ReadPads(NodeView& node) {
  const auto pads = node.Ints("pads");
  if (pads.empty()) return {};
  if (pads.size() % 2 != 0) return Invalid("pads has {} values", pads.size());
  const std::size_t space = pads.size() / 2;
  TANDEM_TRY(NoteSpace("pads", space));
  for (std::size_t d = 0; d < space; ++d) {
    begin_[d] = pads[d];
    end_[d] = pads[d + space];
    if (std::min(begin_[d], end_[d]) < 0 || std::max(begin_[d], end_[d]) > kLargest) {
      return Invalid("pads has {} and {}", begin_[d], end_[d]);
    }
  }
  return {};
}

Result<Window> Window::Read(NodeView& node) {
  Window window;
  const std::string auto_pad = node.Text("auto_pad", "NOTSET");
  if (auto_pad == "SAME_UPPER") {
    window.auto_pad_ = AutoPad::kSameUpper;
  } else if (auto_pad == "SAME_LOWER") {
    window.auto_pad_ = AutoPad::kSameLower;
  } else if (auto_pad == "VALID") {
    window.auto_pad_ = AutoPad::kValid;
  } else if (auto_pad != "NOTSET") {
    return Invalid("auto_pad is '{}'", auto_pad);
  }
  window.has_kernel_ = node.Has("kernel_shape");
  window.ceil_mode_ = node.Int("ceil_mode", 0) != 0;
  TANDEM_TRY(window.ReadSizes(node, "kernel_shape", window.kernel_));
  TANDEM_TRY(window.ReadSizes(node, "strides", window.strides_));
  TANDEM_TRY(window.ReadSizes(node, "dilations", window.dilations_));
  TANDEM_TRY(window.ReadPads(node));
  if (window.auto_pad_ != AutoPad::kNone) window.begin_ = window.end_ = Spatial{};
  return window;
}

std::size_t Window::SpaceOf(const at::Tensor& x) const {
  Require(x.dim() >= 3, "the input has {} dimensions and needs three or more", x.dim());
  const auto space = static_cast<std::size_t>(x.dim() - 2);
  if (space > kMaxSpace) throw UnsupportedError(Format("windows of {} dimensions are not supported", space));
  Require(space_ == 0 || space_ == space, "the input has {} dimensions; attributes are for {}", x.dim(), space_ + 2);
  return space;
}

void Window::CheckKernel(at::IntArrayRef kernel) const {
  Require(!has_kernel_ || kernel == this->kernel(kernel.size()), "the weight is not of the size of kernel_shape");
}

Placement Window::Place(at::IntArrayRef sizes, at::IntArrayRef kernel) const {
  Placement place{.begin = begin_, .end = end_};
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    const std::int64_t reach = (kernel[d] - 1) * dilations_[d] + 1;
    if (keeps_size()) {
      place.count[d] = (sizes[d] + strides_[d] - 1) / strides_[d];
      const std::int64_t total = std::max<std::int64_t>((place.count[d] - 1) * strides_[d] + reach - sizes[d], 0);
      place.begin[d] = same_upper() ? total / 2 : total - total / 2;
      place.end[d] = total - place.begin[d];
      continue;
    }
    const std::int64_t room = sizes[d] + place.begin[d] + place.end[d] - reach;
    Require(room >= 0, "the window is larger than the input");
    place.count[d] = (room + (ceil_mode_ ? strides_[d] - 1 : 0)) / strides_[d] + 1;
    // No window begins in what is added at the end.
    if (ceil_mode_ && (place.count[d] - 1) * strides_[d] >= sizes[d] + place.begin[d]) --place.count[d];
  }
  return place;
}

at::Tensor PadSpace(const at::Tensor& x, const Spatial& begin, const Spatial& end, const at::Scalar& value) {
  std::vector<std::int64_t> pads;
  // ATen begins with the last dimension.
  for (std::int64_t d = x.dim() - 3; d >= 0; --d) {
    pads.push_back(begin[static_cast<std::size_t>(d)]);
    pads.push_back(end[static_cast<std::size_t>(d)]);
  }
  return at::constant_pad_nd(x, pads, value);
}

}  // namespace tandem::training
