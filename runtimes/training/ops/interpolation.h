#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "api/base/result.h"
#include "runtimes/training/ops/node_view.h"

namespace tandem::training {

// How an axis gets another length: the attributes of Resize that are the same for all axes.
struct Interpolation {
  enum class Mode { kNearest, kLinear, kCubic };
  enum class Coordinates {
    kHalfPixel,
    kHalfPixelSymmetric,
    kPytorchHalfPixel,
    kAlignCorners,
    kAsymmetric,
    kTfHalfPixelForNn,
    kTfCropAndResize
  };
  enum class Nearest { kRoundPreferFloor, kRoundPreferCeil, kFloor, kCeil };

  Mode mode = Mode::kNearest;
  Coordinates coordinates = Coordinates::kHalfPixel;
  Nearest nearest = Nearest::kRoundPreferFloor;
  double cubic_a = -0.75;
  double extrapolation = 0;
  bool exclude_outside = false;
  bool antialias = false;

  // Upsample, and Resize before opset 11, know modes only.
  [[nodiscard]] static Result<Interpolation> Read(NodeView& node);
};

// One axis of a Resize.
struct AxisResize {
  std::int64_t from = 0;
  std::int64_t to = 0;
  double scale = 1;
  double roi_start = 0;
  double roi_end = 1;

  [[nodiscard]] bool changes(const Interpolation& how) const {
    return from != to || scale != 1 || how.coordinates == Interpolation::Coordinates::kTfCropAndResize;
  }
};

// `x` with the axis resized, in any of the modes: a choice of elements or a product with a matrix of weights.
[[nodiscard]] at::Tensor ResizeAxis(const at::Tensor& x, std::int64_t axis, const AxisResize& resize,
                                    const Interpolation& how);

}  // namespace tandem::training
