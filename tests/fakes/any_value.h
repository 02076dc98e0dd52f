#pragma once

#include <chrono>
#include <cstdint>

#include <rapidcheck.h>

namespace tandem {

// Values that a property is tried with. Both bounds are included, and all of the range is there in the first case as in
// the last.
[[nodiscard]] inline std::int64_t AnyOf(std::int64_t low, std::int64_t high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<std::int64_t>(low, high + 1));
}

[[nodiscard]] inline std::chrono::nanoseconds Between(std::chrono::nanoseconds low, std::chrono::nanoseconds high) {
  return std::chrono::nanoseconds(AnyOf(low.count(), high.count()));
}

[[nodiscard]] inline bool Coin() {
  return *rc::gen::arbitrary<bool>();
}

}  // namespace tandem
