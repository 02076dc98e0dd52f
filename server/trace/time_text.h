#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace tandem::trace {

// For people: "40 µs", "3.1 ms", "240 ms", "12.5 s". Without its sign.
[[nodiscard]] std::string TimeText(std::chrono::nanoseconds time);

// "3 requests", "1 request".
[[nodiscard]] std::string CountText(std::int64_t count, const char* what);

}  // namespace tandem::trace
