#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "api/base/result.h"
#include "runtimes/training/data/batch_stream.h"

namespace tandem::training {

// Where a run stands, beside its tensors.
struct TrainingProgress {
  std::int64_t step = 0;           // Done.
  StreamPosition position;         // Of the next batch.
  std::optional<double> baseline;  // Before the first step: accuracy, else the loss.
  std::optional<double> best;      // The best evaluation.
  std::int64_t since_best = 0;     // Evaluations that were no better.
};

// As a checkpoint holds it. Numbers are written exactly.
[[nodiscard]] std::string ProgressText(const TrainingProgress& progress);
[[nodiscard]] Result<TrainingProgress> ParseProgress(const std::string& text);

}  // namespace tandem::training
