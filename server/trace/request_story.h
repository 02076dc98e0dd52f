#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/clock.h"
#include "api/base/error.h"
#include "api/base/result.h"
#include "profiler/flight_events.h"
#include "server/metrics/request_metrics.h"
#include "server/trace/batch_runs.h"
#include "server/trace/flight_copy.h"
#include "server/trace/training_spans.h"
#include "server/trace/waiting.h"

namespace tandem::trace {

// All that the recorder knows of one request.
struct RequestStory {
  std::uint64_t number = 0;
  std::string id;                  // The client's, perhaps cut; empty: it gave none.
  std::string model;               // Empty: it asked for none that is served, or its name is not kept.
  bool waits_for_company = false;  // Runs of its model may be put off for others to join.
  MonotonicTime arrived;
  std::optional<RequestAdmission> admission;
  std::vector<BatchRun> runs;      // Those that it was part of: seldom more than one.
  std::optional<Waiting> waiting;  // From its admission to the queue to its first run, or its answer.
  std::optional<MonotonicTime> answered;
  RequestOutcome outcome = RequestOutcome::kSuccess;  // Once answered, as what follows.
  SloVerdict slo = SloVerdict::kNone;
  MissCause cause = MissCause::kNone;
  std::optional<std::chrono::nanoseconds> added;  // By training, at most. Only with a cause.
  std::optional<ErrorCode> error;
  std::optional<MonotonicTime> deadline;
  std::vector<TrainingSpan> training;           // From its arrival to its answer.
  TrainerCounts trainers;                       // When most could run at once in that time.
  std::optional<MonotonicTime> training_since;  // What was decided before is overwritten; nullopt: nothing is.
  MonotonicTime told;                           // When the recorder was read.

  [[nodiscard]] MonotonicTime end() const { return answered.value_or(told); }
};

// "r-17" is the request that the server has so named, else the newest with that id of a client's; anything else, also
// "17", is a client's id first. `now` is when the copy was made. kNotFound says how far back it reaches.
[[nodiscard]] Result<RequestStory> TellStory(const FlightCopy& copy, std::string_view asked, MonotonicTime now);

}  // namespace tandem::trace
