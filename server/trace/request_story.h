#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/clock.h"
#include "api/base/error.h"
#include "api/base/result.h"
#include "profiler/flight_recorder.h"
#include "server/metrics/request_metrics.h"
#include "server/trace/batch_runs.h"
#include "server/trace/training_spans.h"

namespace tandem::trace {

// All that the recorder knows of one request.
struct RequestStory {
  std::uint64_t number = 0;
  std::string id;     // The client's, perhaps cut; empty: it gave none.
  std::string model;  // Empty: it asked for none that is served.
  MonotonicTime arrived;
  std::optional<RequestAdmission> admission;
  std::vector<BatchRun> runs;       // Those that it was part of: seldom more than one.
  std::vector<BatchRun> meanwhile;  // Those of others while it waited, in the order of their beginnings.
  std::optional<MonotonicTime> answered;
  RequestOutcome outcome = RequestOutcome::kSuccess;  // Once answered, as what follows.
  SloVerdict slo = SloVerdict::kNone;
  std::optional<ErrorCode> error;
  std::optional<MonotonicTime> deadline;
  std::vector<TrainingSpan> training;  // From its arrival to its answer.
  MonotonicTime told;                  // When the recorder was read.

  [[nodiscard]] MonotonicTime end() const { return answered.value_or(told); }
};

// The newest request with that id of a client's, else the one that the server has so numbered ("r-17", "17").
// kNotFound says how far back the recorder reaches.
[[nodiscard]] Result<RequestStory> TellStory(const FlightRecorder& recorder, std::string_view asked, MonotonicTime now);

}  // namespace tandem::trace
