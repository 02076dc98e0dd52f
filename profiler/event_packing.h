#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>

#include "api/base/clock.h"
#include "profiler/record_ring.h"

// How events lie in records: for the files that say which events there are, and nobody else.
namespace tandem::packing {

// In the place of a time that is not known.
inline constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::min();

template <typename Event>
[[nodiscard]] FlightRecord Begin(const Event& event, std::uint64_t subject) {
  FlightRecord record;
  record.time = event.at.time_since_epoch().count();
  record.subject = subject;
  record.kind = static_cast<std::uint8_t>(Event::kKind);
  return record;
}

[[nodiscard]] inline MonotonicTime At(std::int64_t time) {
  return MonotonicTime(std::chrono::nanoseconds(time));
}
[[nodiscard]] inline std::optional<MonotonicTime> AtIfAny(std::int64_t time) {
  if (time == kNone) return std::nullopt;
  return At(time);
}
[[nodiscard]] inline std::int64_t Number(const std::optional<MonotonicTime>& at) {
  return at ? at->time_since_epoch().count() : kNone;
}

[[nodiscard]] inline std::optional<std::chrono::nanoseconds> Time(std::int64_t number) {
  if (number == kNone) return std::nullopt;
  return std::chrono::nanoseconds(number);
}
[[nodiscard]] inline std::int64_t Number(const std::optional<std::chrono::nanoseconds>& time) {
  return time ? time->count() : kNone;
}

}  // namespace tandem::packing
