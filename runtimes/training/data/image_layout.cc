#include "runtimes/training/data/image_layout.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

#include "runtimes/training/data/element_convert.h"

namespace tandem::training {
namespace {

constexpr std::int64_t kMostSide = 16'384;

// One number for all channels, one for each, or none at all.
Result<std::vector<float>> PerChannel(const std::vector<double>& given, int channels, float none,
                                      std::string_view name) {
  const auto count = static_cast<std::size_t>(channels);
  if (given.empty()) return std::vector<float>(count, none);
  if (given.size() != 1 && given.size() != count) {
    return Invalid("{} has {} numbers, and the model's pictures have {} channels", name, given.size(), channels);
  }
  std::vector<float> values;
  for (std::size_t c = 0; c < count; ++c) {
    const auto value = static_cast<float>(given[given.size() == 1 ? 0 : c]);
    if (!std::isfinite(value)) return Invalid("{} has a number that is not finite", name);
    values.push_back(value);
  }
  return values;
}

bool IsChannels(std::int64_t dim) {
  return dim == 1 || dim == 3;
}

// Where the channels stand; nullopt when there are none that fit.
std::optional<std::size_t> ChannelsAt(const Shape& shape) {
  if (shape.size() != 3) return std::nullopt;
  if (IsChannels(shape[0])) return 0;
  if (IsChannels(shape[2])) return 2;
  return std::nullopt;
}

}  // namespace

Result<ImageLayout> ImageLayout::Make(const DataNeeds::Input& input, const DataSpec& spec) {
  if (!IsFloat(input.type)) {
    return Invalid("pictures become floats, and input '{}' takes {}", input.name, DataTypeName(input.type));
  }
  ImageLayout layout;
  layout.shape = input.shape;
  Shape sides = input.shape;
  std::int64_t channels = 1;
  if (const auto at = ChannelsAt(input.shape)) {
    channels = sides[*at];
    layout.channels_first = *at == 0;
    sides.erase(sides.begin() + static_cast<std::ptrdiff_t>(*at));
  }
  if (sides.size() != 2) {
    return Invalid("input '{}' of shape {} takes no pictures: [C,H,W], [H,W,C] with 1 or 3 channels, or [H,W]",
                   input.name, ShapeText(input.shape));
  }
  for (const std::int64_t side : sides) {
    if (side < 1 || side > kMostSide) {
      return Invalid("input '{}' of shape {} has no fixed height and width of 1 to {} that pictures could be given",
                     input.name, ShapeText(input.shape), kMostSide);
    }
  }
  layout.channels = static_cast<int>(channels);
  layout.height = static_cast<int>(sides[0]);
  layout.width = static_cast<int>(sides[1]);
  TANDEM_ASSIGN(layout.mean, PerChannel(spec.mean, layout.channels, 0, "mean"));
  TANDEM_ASSIGN(layout.deviation, PerChannel(spec.deviation, layout.channels, 1, "deviation"));
  for (const float value : layout.deviation) {
    if (!(value > 0)) return Invalid("deviation has a number that is not above 0");
  }
  return layout;
}

void ImageLayout::Store(const Picture& picture, std::span<float> values) const {
  const auto count = static_cast<std::size_t>(channels);
  const std::size_t pixels = picture.pixels.size() / count;
  for (std::size_t c = 0; c < count; ++c) {
    std::array<float, 256> table{};
    for (std::size_t v = 0; v < table.size(); ++v) {
      table[v] = (static_cast<float>(v) / 255 - mean[c]) / deviation[c];
    }
    const std::size_t start = channels_first ? c * pixels : c;
    const std::size_t step = channels_first ? 1 : count;
    for (std::size_t i = 0; i < pixels; ++i) values[start + i * step] = table[picture.pixels[i * count + c]];
  }
}

}  // namespace tandem::training
