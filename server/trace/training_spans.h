#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/base/clock.h"
#include "colocation/hold_reason.h"
#include "profiler/flight_recorder.h"

namespace tandem::trace {

// A time in which the same was decided of training.
struct TrainingSpan {
  MonotonicTime from;
  std::optional<MonotonicTime> to;  // Nullopt: it lasts.
  std::optional<HoldReason> hold;
  std::optional<HoldReason> hold_heavy;  // Only heavy operators are held.
  std::int64_t trainers = 0;             // The most there were; 0: nothing was trained.
  // As it began.
  std::int64_t requests = 0;
  std::optional<std::chrono::nanoseconds> quota_left;
  std::optional<std::chrono::nanoseconds> until_refill;

  [[nodiscard]] bool Overlaps(MonotonicTime begin, MonotonicTime end) const {
    return from < end && (!to || *to > begin);
  }
};

// As far back as the recorder reaches, in the order of time.
[[nodiscard]] std::vector<TrainingSpan> TrainingSpans(const FlightRecorder& recorder);

// "held", "heavy operators held", "runs" or "none".
[[nodiscard]] std::string StateOf(const TrainingSpan& span);
// Why training was held, or ran, as a part of a sentence.
[[nodiscard]] std::string ReasonOf(const TrainingSpan& span);

// A time in which one trainer ran, or was stopped.
struct TrainerSpan {
  std::uint64_t trainer = 0;
  MonotonicTime from;
  std::optional<MonotonicTime> to;
  std::optional<HoldReason> hold;
};
[[nodiscard]] std::vector<TrainerSpan> TrainerSpans(const FlightRecorder& recorder);

}  // namespace tandem::trace
