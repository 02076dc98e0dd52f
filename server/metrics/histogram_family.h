#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include <prometheus/metric_family.h>

namespace tandem {

// A histogram of times that was counted elsewhere. `counts` are those up to each bound and above the one before; the
// last has the rest, and no bound.
[[nodiscard]] prometheus::MetricFamily HistogramFamily(
    const std::string& name, const std::string& help, std::span<const std::uint64_t> counts,
    const std::function<std::chrono::nanoseconds(std::size_t)>& bound, std::chrono::nanoseconds sum);

}  // namespace tandem
