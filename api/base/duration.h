#pragma once

#include <chrono>

namespace tandem {

// Times as numbers, for figures and for people.
[[nodiscard]] inline double Ms(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::milli>(time).count();
}
[[nodiscard]] inline double Seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace tandem
