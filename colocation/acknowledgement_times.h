#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace tandem {

// How long trainers took to do as they were told: to stand still, or to go on. Those that had nothing to change are not
// counted.
struct AcknowledgementTimes {
  // Up to 1, 2, 4 … µs, each without those before it; the last has the rest.
  static constexpr std::size_t kBuckets = 22;
  std::array<std::uint64_t, kBuckets> counts{};
  std::chrono::nanoseconds sum{0};

  [[nodiscard]] static std::chrono::microseconds Bound(std::size_t bucket) {
    return std::chrono::microseconds(std::int64_t{1} << bucket);
  }
  // The place of a time, which is not negative.
  [[nodiscard]] static std::size_t BucketOf(std::chrono::nanoseconds time);
  void Add(std::chrono::nanoseconds time);
  AcknowledgementTimes& operator+=(const AcknowledgementTimes& other);

  // Whether a trainer that told `before` may tell this later, once it has been given so many orders and has lived for
  // so long: nothing goes back, each order is obeyed once, and one after another.
  [[nodiscard]] bool CanFollow(const AcknowledgementTimes& before, std::uint64_t orders,
                               std::chrono::nanoseconds lived) const;
};

}  // namespace tandem
