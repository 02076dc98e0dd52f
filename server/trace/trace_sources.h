#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "server/trace/flight_copy.h"
#include "server/trace/trace_writer.h"

namespace tandem::trace {

// Writes the tracks of one kind of thing, as far as they lie in the writer's window.
using TraceSource = std::function<void(TraceWriter&)>;

// The groups of tracks, in the order in which they are shown.
enum TraceGroup : int { kRequestTracks = 1, kWorkerTracks = 2, kTrainingTracks = 3, kLaneTracks = 4 };

// Requests and batches beyond so many are left out, first those that ended first.
inline constexpr std::size_t kMostOfAKind = 20'000;

// The whole file: a JSON object as chrome://tracing and Perfetto read it. It shows what the recorder knew (requests,
// batches by worker, decisions about training, trainers, turns by lane) and what `more` draws. At its end `otherData`
// tells the time that was asked for, for how much of it nothing is missing (`covered_seconds`), and how many requests
// and runs were left out.
[[nodiscard]] std::string WriteTrace(const FlightCopy& copy, const TraceWindow& window,
                                     const std::vector<TraceSource>& more = {});

}  // namespace tandem::trace
