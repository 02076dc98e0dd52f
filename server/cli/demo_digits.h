#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "api/base/result.h"
#include "api/base/tensor.h"

// The task that the demo learns: to tell which of ten digits a small grey picture shows.

namespace tandem::cli {

inline constexpr const char* kDigitsModel = "digits";
inline constexpr std::int64_t kDigitClasses = 10;
inline constexpr std::int64_t kDigitSide = 16;  // A picture has as many rows as columns.

struct DigitPictures {
  Tensor pictures;                   // "x", FP32 [n,1,16,16]: 0 is black, 1 is white.
  std::vector<std::int64_t> labels;  // The digit that each shows.
};

// Draws so many, each somewhere else, larger or smaller, slanted, paler or stronger, and noisy. The same for the same
// seed.
[[nodiscard]] DigitPictures DrawDigits(std::size_t count, std::uint64_t seed);

// Writes them for a training job: arrays `x` and `y` of a .npz file.
[[nodiscard]] Status WriteDigits(const DigitPictures& digits, const std::filesystem::path& file);

// The bytes of an ONNX model that takes such pictures, `x` [n,1,16,16], and gives a score for each digit, `scores`
// [n,10]: two convolutions and a linear layer. Its weights are drawn by chance, so that it knows nothing yet.
[[nodiscard]] std::string UntrainedDigitsModel(std::uint64_t seed);

}  // namespace tandem::cli
