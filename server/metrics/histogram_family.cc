#include "server/metrics/histogram_family.h"

#include <limits>
#include <utility>

#include "api/base/duration.h"

namespace tandem {

prometheus::MetricFamily HistogramFamily(const std::string& name, const std::string& help,
                                         std::span<const std::uint64_t> counts,
                                         const std::function<std::chrono::nanoseconds(std::size_t)>& bound,
                                         std::chrono::nanoseconds sum) {
  prometheus::MetricFamily family{name, help, prometheus::MetricType::Histogram, {}};
  prometheus::ClientMetric metric;
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    below += counts[i];
    const bool last = i + 1 == counts.size();
    const double upper = last ? std::numeric_limits<double>::infinity() : Seconds(bound(i));
    metric.histogram.bucket.push_back({.cumulative_count = below, .upper_bound = upper});
  }
  metric.histogram.sample_count = below;
  metric.histogram.sample_sum = Seconds(sum);
  family.metric.push_back(std::move(metric));
  return family;
}

}  // namespace tandem
