#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "server/cli/demo_build.h"
#include "server/cli/demo_served.h"
#include "server/cli/demo_training.h"

// What the demo says of training while the load goes on. Nothing here asks the server or the clock. `columns` is the
// width of the terminal; with 0, for a pipe, lines have neither limit nor pictures.

namespace tandem::cli {

// "building the trainer: 12 of 61".
[[nodiscard]] std::string BuildLine(const std::optional<BuildSteps>& steps);

// The job's progress and, on a terminal, how its accuracy and loss went so far.
[[nodiscard]] std::vector<std::string> TrainingLines(const TrainingStatus& training, std::size_t columns);

// "digits: 82 answers by version 1, 9.5 % right; 12 by version 2, 97.0 % right"; empty when none has answered.
[[nodiscard]] std::string ServedLine(const ServedDigits& served);

// A curve of blocks from the lowest value to the highest; of more than `columns` values some are left out.
[[nodiscard]] std::string Sparkline(std::span<const double> values, std::size_t columns);

}  // namespace tandem::cli
