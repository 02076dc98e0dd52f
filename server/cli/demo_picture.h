#pragma once

#include <string>

#include "server/cli/demo_verdict.h"

namespace tandem::cli {

// How requests of the first model did alone, beside training that nobody manages, and beside that of the demo, as bars
// of their p99, with what was trained meanwhile. Empty unless all three were measured.
[[nodiscard]] std::string DemoPicture(const DemoOutcome& outcome);

}  // namespace tandem::cli
