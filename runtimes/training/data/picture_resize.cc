#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "runtimes/training/data/picture.h"

namespace tandem::training {
namespace {

// Weights sum to 1 << kWeightBits; with the 8 bits of a sample they fit 31.
constexpr int kWeightBits = 22;

// The samples along one direction that make up one sample of the result.
struct Window {
  int first = 0;
  std::vector<std::int32_t> weights;
};

std::vector<Window> Windows(int from, int to) {
  const double scale = static_cast<double>(from) / to;
  const double reach = std::max(scale, 1.0);
  std::vector<Window> windows(static_cast<std::size_t>(to));
  for (int i = 0; i < to; ++i) {
    const double centre = (i + 0.5) * scale;
    const int first = std::max(static_cast<int>(std::floor(centre - reach + 0.5)), 0);
    const int last = std::min(static_cast<int>(std::floor(centre + reach + 0.5)), from);
    std::vector<double> weights;
    double sum = 0;
    for (int x = first; x < last; ++x) {
      weights.push_back(std::max(0.0, 1 - std::abs(x + 0.5 - centre) / reach));
      sum += weights.back();
    }
    Window& window = windows[static_cast<std::size_t>(i)];
    window.first = first;
    for (const double weight : weights) {
      window.weights.push_back(static_cast<std::int32_t>(std::lround(weight / sum * (1 << kWeightBits))));
    }
  }
  return windows;
}

// The weighted sum of samples that lie `step` apart.
std::uint8_t Sample(const Window& window, const std::uint8_t* samples, std::size_t step) {
  std::int32_t sum = 1 << (kWeightBits - 1);
  for (const std::int32_t weight : window.weights) {
    sum += weight * *samples;
    samples += step;
  }
  return static_cast<std::uint8_t>(std::clamp(sum >> kWeightBits, 0, 255));
}

Picture ResizeWidth(const Picture& picture, int width) {
  Picture out{.width = width, .height = picture.height, .channels = picture.channels, .pixels = {}};
  const auto channels = static_cast<std::size_t>(picture.channels);
  const std::size_t in_row = static_cast<std::size_t>(picture.width) * channels;
  out.pixels.resize(static_cast<std::size_t>(width) * static_cast<std::size_t>(picture.height) * channels);
  const std::vector<Window> windows = Windows(picture.width, width);
  std::uint8_t* to = out.pixels.data();
  for (int y = 0; y < picture.height; ++y) {
    const std::uint8_t* row = &picture.pixels[static_cast<std::size_t>(y) * in_row];
    for (const Window& window : windows) {
      const std::uint8_t* first = row + static_cast<std::size_t>(window.first) * channels;
      for (std::size_t c = 0; c < channels; ++c) *to++ = Sample(window, first + c, channels);
    }
  }
  return out;
}

Picture ResizeHeight(const Picture& picture, int height) {
  Picture out{.width = picture.width, .height = height, .channels = picture.channels, .pixels = {}};
  const std::size_t row = static_cast<std::size_t>(picture.width) * static_cast<std::size_t>(picture.channels);
  out.pixels.resize(row * static_cast<std::size_t>(height));
  std::uint8_t* to = out.pixels.data();
  for (const Window& window : Windows(picture.height, height)) {
    const std::uint8_t* first = &picture.pixels[static_cast<std::size_t>(window.first) * row];
    for (std::size_t x = 0; x < row; ++x) *to++ = Sample(window, first + x, row);
  }
  return out;
}

}  // namespace

Picture Resize(Picture picture, int width, int height) {
  if (width != picture.width) picture = ResizeWidth(picture, width);
  if (height != picture.height) picture = ResizeHeight(picture, height);
  return picture;
}

}  // namespace tandem::training
