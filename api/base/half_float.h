#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace tandem {

// Half-precision floats as they lie in tensors; the nearest where a value lies between two.

[[nodiscard]] inline float FromFp16(std::uint16_t bits) {
  return static_cast<float>(std::bit_cast<_Float16>(bits));
}

[[nodiscard]] inline std::uint16_t ToFp16(float value) {
  return std::bit_cast<std::uint16_t>(static_cast<_Float16>(value));
}

// The upper half of an FP32.
[[nodiscard]] inline float FromBf16(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

[[nodiscard]] inline std::uint16_t ToBf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  // Rounding up could make an infinity of a NaN.
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  const std::uint32_t to_even = 0x7fffU + ((bits >> 16) & 1U);
  return static_cast<std::uint16_t>((bits + to_even) >> 16);
}

}  // namespace tandem
