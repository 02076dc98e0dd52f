#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/base/clock.h"
#include "colocation/hold_reason.h"
#include "profiler/flight_events.h"
#include "profiler/trainer_counts.h"

namespace tandem::trace {

// A time in which the same was decided of training.
struct TrainingSpan {
  MonotonicTime from;
  std::optional<MonotonicTime> to;       // Nullopt: it lasts.
  std::optional<HoldReason> hold;        // As was decided; kPaused: a person paused all that there were.
  std::optional<HoldReason> hold_heavy;  // Only heavy operators are held.
  bool learning = false;                 // It is held to learn when periods of a limit begin.
  // The most there were: of those that are not paused, if there are any. 0: nothing was trained.
  std::int64_t trainers = 0;
  // As it began.
  std::int64_t requests = 0;
  std::optional<std::chrono::nanoseconds> quota_left;
  std::optional<std::chrono::nanoseconds> until_refill;

  [[nodiscard]] bool Overlaps(MonotonicTime begin, MonotonicTime end) const {
    return from < end && (!to || *to > begin);
  }
};

// From records about training in the order of time, as the spans are.
[[nodiscard]] std::vector<TrainingSpan> TrainingSpans(std::span<const FlightRecord> records);

// Who was there in that time, when most could run at once.
[[nodiscard]] TrainerCounts TrainersBetween(std::span<const FlightRecord> records, MonotonicTime from,
                                            MonotonicTime to);

// "held", "heavy operators held", "runs" or "none".
[[nodiscard]] std::string StateOf(const TrainingSpan& span);
// Why training was held, or ran, as a part of a sentence.
[[nodiscard]] std::string ReasonOf(const TrainingSpan& span);

// A time in which one trainer ran, or stood still for one reason.
struct TrainerSpan {
  std::uint64_t trainer = 0;
  std::int64_t job = 0;  // 0: none.
  MonotonicTime from;
  std::optional<MonotonicTime> to;
  std::optional<HoldReason> hold;
};
[[nodiscard]] std::vector<TrainerSpan> TrainerSpans(std::span<const FlightRecord> records);

}  // namespace tandem::trace
