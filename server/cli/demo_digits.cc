#include "server/cli/demo_digits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <string_view>
#include <utility>

#include "api/wire/npy.h"

namespace tandem::cli {
namespace {

constexpr int kGlyphColumns = 5;
constexpr int kGlyphRows = 7;
constexpr std::array<std::string_view, kDigitClasses> kGlyphs = {
    " ### #   ##  ### # ###  ##   # ### ", "  #   ##    #    #    #    #   ### ", " ### #   #    #   #   #   #   #####",
    " ### #   #    #  ##     ##   # ### ", "   #   ##  # # #  # #####   #    # ", "######    ####     #    ##   # ### ",
    "  ##  #   #    #### #   ##   # ### ", "#####    #   #   #   #    #    #   ", " ### #   ##   # ### #   ##   # ### ",
    " ### #   ##   # ####    #   #  ##  "};

// Equal on every platform, unlike the distributions of the standard library.
class Chance {
 public:
  explicit Chance(std::uint64_t seed) : bits_(seed) {}

  float Between(float least, float most) {
    return least + (most - least) * static_cast<float>(bits_() >> 40) / static_cast<float>(1 << 24);
  }
  // Around 0, of spread 1: nearly normal.
  float Noise() {
    float sum = 0;
    for (int i = 0; i < 4; ++i) sum += Between(-1, 1);
    return sum * 0.866F;
  }
  std::int64_t Below(std::int64_t end) { return static_cast<std::int64_t>(bits_() >> 32) % end; }

 private:
  std::mt19937_64 bits_;
};

// How much ink there is at a place of the glyph, in units of its cells; cells blend into one another.
float InkAt(std::string_view glyph, float column, float row) {
  const auto cell = [glyph](int c, int r) {
    if (c < 0 || r < 0 || c >= kGlyphColumns || r >= kGlyphRows) return 0.0F;
    return glyph[static_cast<std::size_t>(r) * kGlyphColumns + static_cast<std::size_t>(c)] == '#' ? 1.0F : 0.0F;
  };
  const auto c = static_cast<int>(std::floor(column));
  const auto r = static_cast<int>(std::floor(row));
  const float right = column - static_cast<float>(c);
  const float down = row - static_cast<float>(r);
  return (1 - down) * ((1 - right) * cell(c, r) + right * cell(c + 1, r)) +
         down * ((1 - right) * cell(c, r + 1) + right * cell(c + 1, r + 1));
}

void DrawDigit(std::string_view glyph, Chance& chance, float* pixels) {
  constexpr float kMiddle = (kDigitSide - 1) / 2.0F;
  const float cell = chance.Between(1.3F, 2.0F);  // Pixels.
  const float slant = chance.Between(-0.25F, 0.25F);
  const float x = kMiddle + chance.Between(-2, 2);
  const float y = kMiddle + chance.Between(-1.5F, 1.5F);
  const float paper = chance.Between(0, 0.3F);
  const float ink = chance.Between(0.4F, 0.8F);
  const float noise = chance.Between(0.05F, 0.2F);
  for (int row = 0; row < kDigitSide; ++row) {
    for (int column = 0; column < kDigitSide; ++column) {
      const float down = (static_cast<float>(row) - y) / cell;
      const float right = (static_cast<float>(column) - x) / cell + slant * down;
      const float strength = InkAt(glyph, right + (kGlyphColumns - 1) / 2.0F, down + (kGlyphRows - 1) / 2.0F);
      *pixels++ = std::clamp(paper + ink * strength + noise * chance.Noise(), 0.0F, 1.0F);
    }
  }
}

}  // namespace

DigitPictures DrawDigits(std::size_t count, std::uint64_t seed) {
  constexpr std::size_t kPixels = static_cast<std::size_t>(kDigitSide * kDigitSide);
  Chance chance(seed);
  AlignedBuffer buffer(count * kPixels * sizeof(float));
  std::array<float, kPixels> picture{};
  DigitPictures digits;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t label = chance.Below(kDigitClasses);
    DrawDigit(kGlyphs[static_cast<std::size_t>(label)], chance, picture.data());
    std::memcpy(buffer.data() + i * sizeof(picture), picture.data(), sizeof(picture));
    digits.labels.push_back(label);
  }
  digits.pictures = {.name = "x",
                     .type = DataType::kFp32,
                     .shape = {static_cast<std::int64_t>(count), 1, kDigitSide, kDigitSide},
                     .data = Bytes::Own(std::move(buffer))};
  return digits;
}

Status WriteDigits(const DigitPictures& digits, const std::filesystem::path& file) {
  const auto bytes = std::as_bytes(std::span(digits.labels));
  const Tensor labels{.name = "y",
                      .type = DataType::kInt64,
                      .shape = {static_cast<std::int64_t>(digits.labels.size())},
                      .data = {.view = bytes, .owner = nullptr}};
  return WriteNpz(file, {digits.pictures, labels});
}

}  // namespace tandem::cli
