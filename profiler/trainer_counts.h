#pragma once

#include <algorithm>
#include <cstdint>

namespace tandem {

// Trainers that there are, by what keeps them. A plain value.
struct TrainerCounts {
  std::int64_t running = 0;  // Or held, if that was decided.
  std::int64_t waiting = 0;  // For their turns among jobs.
  std::int64_t paused = 0;   // By a person.

  [[nodiscard]] std::int64_t unpaused() const { return running + waiting; }
  friend bool operator==(const TrainerCounts&, const TrainerCounts&) = default;

  // As one value of a record, up to kMost of each.
  static constexpr std::int64_t kMost = (std::int64_t{1} << 20) - 1;
  [[nodiscard]] std::int64_t Pack() const noexcept {
    const auto field = [](std::int64_t count) { return std::clamp<std::int64_t>(count, 0, kMost); };
    return field(running) | field(waiting) << 20 | field(paused) << 40;
  }
  [[nodiscard]] static TrainerCounts Unpack(std::int64_t value) {
    return {.running = value & kMost, .waiting = (value >> 20) & kMost, .paused = (value >> 40) & kMost};
  }
};

}  // namespace tandem
