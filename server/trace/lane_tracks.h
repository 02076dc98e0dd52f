#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "api/base/clock.h"
#include "profiler/record_ring.h"
#include "server/trace/flight_copy.h"
#include "server/trace/trace_writer.h"

namespace tandem::trace {

// A time in which one job had a lane to itself.
struct LaneTurn {
  std::uint64_t lane = 0;
  std::uint64_t job = 0;
  MonotonicTime from;
  std::optional<MonotonicTime> to;  // Nullopt: it lasts.
};

// From records about turns, as they were written; by lane, and in the order of time. Those of a lane do not overlap:
// what reaches into the next is cut.
[[nodiscard]] std::vector<LaneTurn> LaneTurns(std::span<const FlightRecord> records);

// A track for each lane in which somebody had a turn.
void DrawLanes(const FlightCopy& copy, TraceWriter& out);

}  // namespace tandem::trace
