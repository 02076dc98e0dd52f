#include "server/rest/base64.h"

#include <array>
#include <cstdint>

namespace tandem::rest {
namespace {

constexpr std::uint8_t kNone = 0xFF;

constexpr std::array<std::uint8_t, 256> kValues = [] {
  std::array<std::uint8_t, 256> values{};
  values.fill(kNone);
  std::uint8_t value = 0;
  for (const char c : std::string_view("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")) {
    values[static_cast<unsigned char>(c)] = value++;
  }
  return values;
}();

}  // namespace

std::optional<std::string> DecodeBase64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::size_t padding = 0;
  while (padding < 2 && text.ends_with('=')) {
    text.remove_suffix(1);
    ++padding;
  }
  std::string bytes;
  bytes.resize_and_overwrite(text.size() / 4 * 3 + 3, [&](char* out, std::size_t) {
    char* at = out;
    std::uint32_t bits = 0;
    std::uint8_t seen = 0;  // Has the bits of kNone once a letter was wrong.
    for (std::size_t i = 0; i < text.size(); ++i) {
      const std::uint8_t value = kValues[static_cast<unsigned char>(text[i])];
      seen |= value;
      bits = bits << 6 | (value & 63);
      if (i % 4 != 3) continue;
      *at++ = static_cast<char>(bits >> 16);
      *at++ = static_cast<char>(bits >> 8);
      *at++ = static_cast<char>(bits);
    }
    if (padding == 1) {
      *at++ = static_cast<char>(bits >> 10);
      *at++ = static_cast<char>(bits >> 2);
    } else if (padding == 2) {
      *at++ = static_cast<char>(bits >> 4);
    }
    if (seen > 63) padding = 3;
    return static_cast<std::size_t>(at - out);
  });
  if (padding > 2) return std::nullopt;
  return bytes;
}

}  // namespace tandem::rest
