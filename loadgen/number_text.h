#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tandem::loadgen {

// The whole text as a finite decimal number ("12", "0.5", "1e-05"): no space, no '+', no hexadecimal. Else nothing.
[[nodiscard]] std::optional<double> ParseNumber(std::string_view text);

// The whole text as digits of a number that fits. Else nothing.
[[nodiscard]] std::optional<std::uint64_t> ParseCount(std::string_view text);

}  // namespace tandem::loadgen
