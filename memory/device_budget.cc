#include "memory/device_budget.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

#include "api/base/byte_text.h"

namespace tandem {
namespace {

constexpr double kLeastBytes = 0x1p20;
constexpr double kMostBytes = 0x1p60;
constexpr double kLeastPercent = 1;
constexpr double kMostPercent = 100;

// All of it a number; nullopt else.
std::optional<double> NumberIn(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

Result<MemoryShare> ParseMemoryShare(std::string_view text) {
  if (text.ends_with('%')) {
    std::string_view number = text.substr(0, text.size() - 1);
    if (number.ends_with(' ')) number.remove_suffix(1);
    const auto percent = NumberIn(number);
    if (percent && *percent >= kLeastPercent && *percent <= kMostPercent) return MemoryShare{.percent = *percent};
    return Invalid("'{}' is not a part from {} to {} %", text, kLeastPercent, kMostPercent);
  }
  auto bytes = NumberIn(text);
  if (!bytes) bytes = ParseByteText(text);
  if (bytes && *bytes >= kLeastBytes && *bytes <= kMostBytes) {
    return MemoryShare{.bytes = static_cast<std::uint64_t>(*bytes)};
  }
  return Invalid("'{}' is neither bytes from 1MiB on, like 8GiB or 8000000000, nor a part of what there is, like 80%",
                 text);
}

DeviceBudget BudgetOf(const MemoryShare& share, const MemoryThere& there) {
  const std::uint64_t usable = there.usable();
  const auto part = static_cast<std::uint64_t>(std::floor(static_cast<double>(usable) / 100 * share.percent));
  return {.bytes = std::min(share.bytes.value_or(part), usable), .share = share, .there = there};
}

std::string BudgetWords(const DeviceBudget& budget) {
  const MemoryThere& there = budget.there;
  const bool limited = there.usable() < there.device;
  const std::string place = limited ? Format("the control group's limit of {}", ByteText(there.usable()))
                                    : Format("the machine's {}", ByteText(there.device));
  if (!budget.share.bytes) return Format("{:.4g} % of {}", budget.share.percent, place);
  if (*budget.share.bytes <= there.usable()) return "what --memory says";
  return Format("all of {}, less than --memory says", place);
}

}  // namespace tandem
