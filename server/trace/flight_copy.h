#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "api/base/clock.h"
#include "profiler/flight_recorder.h"

namespace tandem::trace {

// What a recorder held at one time. All that is told of a request, and all of a picture, is made from one of these, so
// that its parts fit together. Borrows the names, which the recorder owns.
struct FlightCopy {
  std::vector<FlightRecord> requests;  // As they were written.
  std::vector<FlightRecord> training;  // By time.
  std::vector<FlightRecord> turns;     // In lanes; as they were written.
  const NameTable* names = nullptr;
  int workers = 1;
  std::size_t capacity = 0;  // For requests.
  // From when on nothing is missing; nullopt: nothing was overwritten.
  std::optional<MonotonicTime> requests_since;
  std::optional<MonotonicTime> training_since;
  std::optional<MonotonicTime> turns_since;
};

// Takes milliseconds.
[[nodiscard]] FlightCopy CopyOf(const FlightRecorder& recorder);

// Several threads write to a ring, each a little after what it tells of.
[[nodiscard]] std::vector<FlightRecord> ByTime(std::vector<FlightRecord> records);

}  // namespace tandem::trace
