#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "api/base/error.h"
#include "api/base/result.h"
#include "api/base/training_memory.h"

// What a trainer tells the server, one line of JSON each, over a pipe.

namespace tandem {

// What the run will be; the first event but for an estimate.
struct PlanEvent {
  std::int64_t first_step = 0;  // Larger than 0 when it goes on from a checkpoint.
  std::int64_t total_steps = 0;
  std::int64_t examples = 0;
  std::int64_t evaluation_examples = 0;
  std::int64_t parameters = 0;

  friend bool operator==(const PlanEvent&, const PlanEvent&) = default;
};

struct StepEvent {
  std::int64_t step = 0;  // Steps done.
  std::int64_t epoch = 0;
  double loss = 0;
  double learning_rate = 0;

  friend bool operator==(const StepEvent&, const StepEvent&) = default;
};

struct EvaluationEvent {
  std::int64_t step = 0;
  double loss = 0;
  std::optional<double> accuracy;
  bool best = false;

  friend bool operator==(const EvaluationEvent&, const EvaluationEvent&) = default;
};

// A checkpoint that was written, or (when `problem` is not empty) could not be.
struct CheckpointEvent {
  std::int64_t step = 0;
  std::string file;
  std::uint64_t bytes = 0;
  std::uint32_t checksum = 0;
  std::string problem;

  friend bool operator==(const CheckpointEvent&, const CheckpointEvent&) = default;
};

// A checkpoint that could not be read and was passed over.
struct SkippedEvent {
  std::string file;
  std::string why;

  friend bool operator==(const SkippedEvent&, const SkippedEvent&) = default;
};

// What the run is expected to take of memory; before the plan.
struct EstimateEvent {
  MemoryEstimate estimate;

  friend bool operator==(const EstimateEvent&, const EstimateEvent&) = default;
};

// What it takes; after its first steps.
struct MemoryEvent {
  MemoryUse use;

  friend bool operator==(const MemoryEvent&, const MemoryEvent&) = default;
};

enum class TrainerOutcome { kFinished, kStoppedEarly, kInterrupted, kFailed };

// The last event: how it ended. What was measured before the first step and at its best, if anything was.
struct EndEvent {
  TrainerOutcome outcome = TrainerOutcome::kFailed;
  std::int64_t step = 0;
  std::optional<double> baseline;
  std::optional<double> best;
  Error error;  // Of kFailed.

  friend bool operator==(const EndEvent&, const EndEvent&) = default;
};

using TrainerEvent = std::variant<PlanEvent, StepEvent, EvaluationEvent, CheckpointEvent, SkippedEvent, EstimateEvent,
                                  MemoryEvent, EndEvent>;

// Longer lines are refused.
inline constexpr std::size_t kMaxTrainerLine = 64 * 1024;

// One line, without its end.
[[nodiscard]] std::string ToLine(const TrainerEvent& event);
// What a line says; a trainer is not trusted: kInvalidArgument for whatever is no event.
[[nodiscard]] Result<TrainerEvent> ParseTrainerLine(std::string_view line);

}  // namespace tandem
