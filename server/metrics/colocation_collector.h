#pragma once

#include <vector>

#include <prometheus/metric_family.h>

#include "colocation/arbiter.h"

namespace tandem {

// What /metrics shows of decisions about training.
[[nodiscard]] std::vector<prometheus::MetricFamily> ColocationFamilies(const ArbiterState& state);

}  // namespace tandem
