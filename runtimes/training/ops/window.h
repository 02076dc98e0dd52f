#pragma once

#include <array>
#include <cstdint>

#include <ATen/core/Tensor.h>

#include "api/base/result.h"
#include "runtimes/training/ops/node_view.h"

namespace tandem::training {

// As many dimensions of space as ATen slides windows over.
inline constexpr std::size_t kMaxSpace = 3;
using Spatial = std::array<std::int64_t, kMaxSpace>;

// Where a window lies on an input: what is added at both ends, and how often it fits.
struct Placement {
  Spatial begin{};
  Spatial end{};
  Spatial count{};
};

// What convolutions and pools have in common: the window that slides over the dimensions of space. Attributes are read
// and checked once; those that a node leaves out fit any number of dimensions. Immutable.
class Window {
 public:
  // Reads auto_pad, ceil_mode, dilations, kernel_shape, pads and strides.
  [[nodiscard]] static Result<Window> Read(NodeView& node);

  // The dimensions of space of an input [N, C, …]; throws when they are not those of the attributes.
  [[nodiscard]] std::size_t SpaceOf(const at::Tensor& x) const;
  // Throws when `kernel` is not what the attribute says.
  void CheckKernel(at::IntArrayRef kernel) const;
  [[nodiscard]] Placement Place(at::IntArrayRef sizes, at::IntArrayRef kernel) const;

  [[nodiscard]] bool has_kernel() const { return has_kernel_; }
  [[nodiscard]] at::IntArrayRef kernel(std::size_t space) const { return {kernel_.data(), space}; }
  [[nodiscard]] at::IntArrayRef strides(std::size_t space) const { return {strides_.data(), space}; }
  [[nodiscard]] at::IntArrayRef dilations(std::size_t space) const { return {dilations_.data(), space}; }
  [[nodiscard]] bool ceil_mode() const { return ceil_mode_; }
  [[nodiscard]] bool is_dilated() const { return dilations_ != Spatial{1, 1, 1}; }
  // SAME_UPPER or SAME_LOWER.
  [[nodiscard]] bool keeps_size() const { return auto_pad_ == AutoPad::kSameUpper || auto_pad_ == AutoPad::kSameLower; }
  [[nodiscard]] bool same_upper() const { return auto_pad_ == AutoPad::kSameUpper; }
  [[nodiscard]] const Spatial& pads_begin() const { return begin_; }
  [[nodiscard]] const Spatial& pads_end() const { return end_; }

 private:
  enum class AutoPad { kNone, kValid, kSameUpper, kSameLower };

  [[nodiscard]] Status ReadPads(NodeView& node);
  // Fills `values` with the attribute, and notes how many dimensions it is for.
  [[nodiscard]] Status ReadSizes(NodeView& node, std::string_view name, Spatial& values);
  [[nodiscard]] Status NoteSpace(std::string_view name, std::size_t space);

  std::size_t space_ = 0;  // 0: no attribute says.
  bool has_kernel_ = false;
  bool ceil_mode_ = false;
  AutoPad auto_pad_ = AutoPad::kNone;
  Spatial kernel_{1, 1, 1};
  Spatial strides_{1, 1, 1};
  Spatial dilations_{1, 1, 1};
  Spatial begin_{};
  Spatial end_{};
};

// Adds `value` around the dimensions of space.
[[nodiscard]] at::Tensor PadSpace(const at::Tensor& x, const Spatial& begin, const Spatial& end,
                                  const at::Scalar& value);

}  // namespace tandem::training
