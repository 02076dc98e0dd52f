#include "runtimes/training/ops/interpolation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include <ATen/ATen.h>

namespace tandem::training {
namespace {

using Coordinates = Interpolation::Coordinates;
using Mode = Interpolation::Mode;
using Nearest = Interpolation::Nearest;

template <typename Enum>
Result<Enum> Choose(const std::map<std::string, Enum>& choices, std::string_view name, const std::string& value) {
  const auto found = choices.find(value);
  if (found == choices.end()) return Invalid("{} is '{}'", name, value);
  return found->second;
}

// Where the place `i` of the result lies in the input.
double SourceOf(std::int64_t i, const AxisResize& resize, Coordinates coordinates) {
  const auto x = static_cast<double>(i);
  const auto from = static_cast<double>(resize.from);
  const auto to = static_cast<double>(resize.to);
  switch (coordinates) {
    case Coordinates::kHalfPixel: return (x + 0.5) / resize.scale - 0.5;
    case Coordinates::kHalfPixelSymmetric: {
      const double adjustment = to / (resize.scale * from);
      return from / 2 * (1 - adjustment) + (x + 0.5) / resize.scale - 0.5;
    }
    case Coordinates::kPytorchHalfPixel: return resize.to > 1 ? (x + 0.5) / resize.scale - 0.5 : 0;
    // The length that the scale asks for, which may have been cut to a whole number.
    case Coordinates::kAlignCorners: {
      const double last = from * resize.scale - 1;
      return last <= 0 || resize.to == 1 ? 0 : x * (from - 1) / last;
    }
    case Coordinates::kAsymmetric: return x / resize.scale;
    case Coordinates::kTfHalfPixelForNn: return (x + 0.5) / resize.scale;
    case Coordinates::kTfCropAndResize:
      if (resize.to == 1) return 0.5 * (resize.roi_start + resize.roi_end) * (from - 1);
      return resize.roi_start * (from - 1) + x * (resize.roi_end - resize.roi_start) * (from - 1) / (to - 1);
  }
  return 0;
}

double NearestTo(double source, Nearest nearest) {
  switch (nearest) {
    case Nearest::kRoundPreferFloor: return std::ceil(source - 0.5);
    case Nearest::kRoundPreferCeil: return std::floor(source + 0.5);
    case Nearest::kFloor: return std::floor(source);
    case Nearest::kCeil: return std::ceil(source);
  }
  return 0;
}

double CubicWeight(double distance, double a) {
  const double d = std::abs(distance);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  if (d < 2) return a * (((d - 5) * d + 8) * d - 4);
  return 0;
}

// Adds to `row` what each element of the input weighs at `source`.
void AddWeights(double source, const AxisResize& resize, const Interpolation& how, double* row) {
  // Without smoothing, a shrunk axis looks no further than a stretched one.
  const double scale = how.antialias ? std::min(resize.scale, 1.0) : 1.0;
  const double support = (how.mode == Mode::kCubic ? 2.0 : 1.0) / scale;
  const auto low = static_cast<std::int64_t>(std::floor(source - support)) + 1;
  const auto high = std::max(low, static_cast<std::int64_t>(std::ceil(source + support)) - 1);
  double sum = 0;
  std::vector<std::pair<std::int64_t, double>> taps;
  for (std::int64_t i = low; i <= high; ++i) {
    if (how.exclude_outside && (i < 0 || i >= resize.from)) continue;
    const double distance = (static_cast<double>(i) - source) * scale;
    const double weight =
        how.mode == Mode::kCubic ? CubicWeight(distance, how.cubic_a) : std::max(0.0, 1 - std::abs(distance));
    taps.emplace_back(std::clamp<std::int64_t>(i, 0, resize.from - 1), weight);
    sum += weight;
  }
  for (const auto& [i, weight] : taps) row[i] += sum == 0 ? 0 : weight / sum;
}

// Whether the place of the input is one that gets the extrapolation value.
bool IsOutside(double source, const AxisResize& resize, const Interpolation& how) {
  return how.coordinates == Coordinates::kTfCropAndResize &&
         (source < 0 || source > static_cast<double>(resize.from - 1));
}

}  // namespace

Result<Interpolation> Interpolation::Read(NodeView& node) {
  Interpolation how;
  TANDEM_ASSIGN(how.mode, Choose<Mode>({{"nearest", Mode::kNearest},
                                        {"linear", Mode::kLinear},
                                        {"bilinear", Mode::kLinear},
                                        {"cubic", Mode::kCubic}},
                                       "mode", node.Text("mode", "nearest")));
  if (node.opset() < 11) {
    how.coordinates = Coordinates::kAsymmetric;
    how.nearest = Nearest::kFloor;
    return how;
  }
  TANDEM_ASSIGN(how.coordinates, Choose<Coordinates>({{"half_pixel", Coordinates::kHalfPixel},
                                                      {"half_pixel_symmetric", Coordinates::kHalfPixelSymmetric},
                                                      {"pytorch_half_pixel", Coordinates::kPytorchHalfPixel},
                                                      {"align_corners", Coordinates::kAlignCorners},
                                                      {"asymmetric", Coordinates::kAsymmetric},
                                                      {"tf_half_pixel_for_nn", Coordinates::kTfHalfPixelForNn},
                                                      {"tf_crop_and_resize", Coordinates::kTfCropAndResize}},
                                                     "coordinate_transformation_mode",
                                                     node.Text("coordinate_transformation_mode", "half_pixel")));
  TANDEM_ASSIGN(how.nearest, Choose<Nearest>({{"round_prefer_floor", Nearest::kRoundPreferFloor},
                                              {"round_prefer_ceil", Nearest::kRoundPreferCeil},
                                              {"floor", Nearest::kFloor},
                                              {"ceil", Nearest::kCeil}},
                                             "nearest_mode", node.Text("nearest_mode", "round_prefer_floor")));
  how.cubic_a = node.Float("cubic_coeff_a", -0.75);
  how.extrapolation = node.Float("extrapolation_value", 0.0);
  how.exclude_outside = node.Int("exclude_outside", 0) != 0;
  how.antialias = node.Int("antialias", 0) != 0;
  return how;
}

at::Tensor ResizeAxis(const at::Tensor& x, std::int64_t axis, const AxisResize& resize, const Interpolation& how) {
  const auto to = static_cast<std::size_t>(resize.to);
  const auto from = static_cast<std::size_t>(resize.from);
  std::vector<std::int64_t> chosen(to);
  std::vector<double> weights(how.mode == Mode::kNearest ? 0 : to * from);
  std::vector<std::int64_t> outside;
  for (std::size_t i = 0; i < to; ++i) {
    const double source = SourceOf(static_cast<std::int64_t>(i), resize, how.coordinates);
    if (IsOutside(source, resize, how)) outside.push_back(static_cast<std::int64_t>(i));
    const double last = static_cast<double>(resize.from - 1);
    if (how.mode == Mode::kNearest) {
      chosen[i] = static_cast<std::int64_t>(std::clamp(NearestTo(source, how.nearest), 0.0, last));
    } else {
      // No further off than that all neighbours are the same element.
      const double reach = 4 + 4 / std::min(resize.scale, 1.0);
      AddWeights(std::clamp(source, -reach, last + reach), resize, how, weights.data() + i * from);
    }
  }
  at::Tensor y;
  if (how.mode == Mode::kNearest) {
    y = x.index_select(axis, at::tensor(chosen, at::kLong));
  } else {
    const at::Tensor matrix = at::tensor(weights, at::kDouble).reshape({resize.to, resize.from}).to(x.scalar_type());
    y = at::matmul(x.transpose(axis, -1), matrix.t()).transpose(axis, -1);
  }
  return outside.empty() ? y : y.index_fill(axis, at::tensor(outside, at::kLong), how.extrapolation);
}

}  // namespace tandem::training
