#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tandem::http {

// The character classes of RFC 9110; none of them depends on the locale.
[[nodiscard]] constexpr bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}
[[nodiscard]] constexpr bool IsAlpha(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
[[nodiscard]] constexpr bool IsVisible(char c) {
  return c > 0x20 && c < 0x7f;
}
[[nodiscard]] constexpr bool IsBlank(char c) {
  return c == ' ' || c == '\t';
}
// Control characters, HTAB among them.
[[nodiscard]] constexpr bool IsControl(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}
[[nodiscard]] constexpr bool IsTokenChar(char c) {
  return IsDigit(c) || IsAlpha(c) || std::string_view("!#$%&'*+-.^_`|~").contains(c);
}
[[nodiscard]] constexpr char ToLower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
[[nodiscard]] constexpr int HexValue(char c) {
  if (IsDigit(c)) return c - '0';
  const char lower = ToLower(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

[[nodiscard]] bool EqualsIgnoringCase(std::string_view a, std::string_view b);
[[nodiscard]] std::string_view TrimBlanks(std::string_view text);

// 1 to 19 decimal digits and nothing else; none when it does not fit.
[[nodiscard]] std::optional<std::uint64_t> ParseDecimal(std::string_view text);

// Client text for an error message: Excerpt() in quotes.
[[nodiscard]] std::string Quoted(std::string_view text);

}  // namespace tandem::http
