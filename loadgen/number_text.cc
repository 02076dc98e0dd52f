#include "loadgen/number_text.h"

#include <charconv>
#include <cmath>
#include <system_error>

namespace tandem::loadgen {

std::optional<double> ParseNumber(std::string_view text) {
  double value = 0;
  const char* const first = text.data();
  const char* const last = first + text.size();
  const auto [end, error] = std::from_chars(first, last, value);
  // It also reads "inf" and "nan".
  if (error != std::errc() || end != last || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> ParseCount(std::string_view text) {
  std::uint64_t value = 0;
  const char* const first = text.data();
  const char* const last = first + text.size();
  const auto [end, error] = std::from_chars(first, last, value);
  if (error != std::errc() || end != last) return std::nullopt;
  return value;
}

}  // namespace tandem::loadgen
