#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "api/base/clock.h"
#include "api/base/error.h"
#include "server/trace/flight_copy.h"

namespace tandem::trace {

// One run of a model, for one request or several.
struct BatchRun {
  std::uint64_t batch = 0;
  std::string model;
  std::int64_t version = 0;
  std::int64_t elements = 0;
  std::int64_t requests = 0;
  std::uint16_t worker = 0;  // Or kFrontEnd.
  bool narrow = false;       // On one thread.
  bool exclusive = false;    // No other worker ran anything meanwhile.
  MonotonicTime began;
  std::optional<MonotonicTime> ended;  // Nullopt: it goes on.
  std::optional<ErrorCode> error;
  std::optional<std::chrono::nanoseconds> expected;
};

// By the number of the batch.
using BatchRuns = std::map<std::uint64_t, BatchRun>;

// All whose beginning or end is there. One that has no end there ended when the next began on its worker, or, on the
// thread of a front end, when its request was answered.
[[nodiscard]] BatchRuns ReadBatchRuns(const FlightCopy& copy);

}  // namespace tandem::trace
