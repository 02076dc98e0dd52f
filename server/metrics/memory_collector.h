#pragma once

#include <vector>

#include <prometheus/metric_family.h>

#include "memory/memory_map.h"

namespace tandem {

// What /metrics shows of the machine's memory and who has it.
[[nodiscard]] std::vector<prometheus::MetricFamily> MemoryFamilies(const MemoryMap& map);

}  // namespace tandem
