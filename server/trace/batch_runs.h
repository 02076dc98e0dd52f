#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "api/base/clock.h"
#include "api/base/error.h"
#include "profiler/flight_recorder.h"

namespace tandem::trace {

// One run of a model, for one request or several.
struct BatchRun {
  std::uint64_t batch = 0;
  std::string model;
  std::int64_t version = 0;
  std::int64_t elements = 0;
  std::int64_t requests = 0;
  std::uint16_t worker = 0;  // Or kFrontEnd.
  MonotonicTime began;
  std::optional<MonotonicTime> ended;  // Nullopt: it goes on.
  std::optional<ErrorCode> error;
  std::optional<std::chrono::nanoseconds> expected;
};

// By the number of the batch.
using BatchRuns = std::map<std::uint64_t, BatchRun>;

// All whose beginning is still in the recorder. One of which only the beginning is there, and on whose worker another
// has begun since, ended when that began.
[[nodiscard]] BatchRuns ReadBatchRuns(const FlightRecorder& recorder);

}  // namespace tandem::trace
