#include "api/base/byte_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>

#include "api/base/format.h"

namespace tandem {

std::optional<double> ParseByteText(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, double>, 9> kUnits = {{{"B", 1},
                                                                          {"KB", 1e3},
                                                                          {"MB", 1e6},
                                                                          {"GB", 1e9},
                                                                          {"TB", 1e12},
                                                                          {"KiB", 0x1p10},
                                                                          {"MiB", 0x1p20},
                                                                          {"GiB", 0x1p30},
                                                                          {"TiB", 0x1p40}}};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (text.starts_with(' ')) text.remove_prefix(1);
  const auto unit = std::ranges::find(kUnits, text, &std::pair<std::string_view, double>::first);
  if (unit == kUnits.end()) return std::nullopt;
  return std::floor(number * unit->second);
}

std::string ByteText(std::uint64_t bytes) {
  if (bytes < 1024) return Format("{} B", bytes);
  double number = static_cast<double>(bytes);
  for (const char* const unit : {"KiB", "MiB"}) {
    number /= 1024;
    // What would be rounded to 1024 belongs to the next unit.
    if (number < 1023.95) return Format("{:.1f} {}", number, unit);
  }
  return Format("{:.1f} GiB", number / 1024);
}

}  // namespace tandem
