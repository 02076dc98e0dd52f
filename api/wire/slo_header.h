#pragma once

#include <chrono>
#include <string_view>

#include "api/base/result.h"

namespace tandem {

// The value of the `x-slo-ms` header, over either front end: a number of milliseconds above 0 and at most a day, as
// parameter slo_ms has it. Anything else, also no text, is kInvalidArgument and named. Thread-safe.
[[nodiscard]] Result<std::chrono::microseconds> ParseSloHeader(std::string_view text);

}  // namespace tandem
