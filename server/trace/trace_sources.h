#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "profiler/flight_recorder.h"
#include "server/trace/trace_writer.h"

namespace tandem::trace {

// Writes the tracks of one kind of thing, as far as they lie in the writer's window.
using TraceSource = std::function<void(TraceWriter&)>;

// The groups of tracks, in the order in which they are shown.
enum TraceGroup : int { kRequestTracks = 1, kWorkerTracks = 2, kTrainingTracks = 3 };

// Requests and batches beyond so many are left out, the oldest first.
inline constexpr std::size_t kMostOfAKind = 20'000;

// What the recorder knows: requests, batches by worker, decisions about training, trainers. Borrows it.
[[nodiscard]] std::vector<TraceSource> RecorderSources(const FlightRecorder& recorder);

// The whole file: a JSON object as chrome://tracing and Perfetto read it. `otherData` tells the time that was asked
// for, and `covered_seconds`: how much of it the recorder still knows.
[[nodiscard]] std::string WriteTrace(const FlightRecorder& recorder, const TraceWindow& window,
                                     const std::vector<TraceSource>& sources);

}  // namespace tandem::trace
