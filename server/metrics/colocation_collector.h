#pragma once

#include <vector>

#include <prometheus/metric_family.h>

#include "colocation/arbiter.h"
#include "colocation/job_turns.h"

namespace tandem {

// What /metrics shows of decisions about training.
[[nodiscard]] std::vector<prometheus::MetricFamily> ColocationFamilies(const ArbiterState& state);
// Of turns among training jobs.
[[nodiscard]] std::vector<prometheus::MetricFamily> TurnFamilies(const TurnsState& state);

}  // namespace tandem
