#include "server/metrics/colocation_collector.h"

#include <limits>
#include <utility>

#include "api/base/duration.h"

namespace tandem {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

MetricFamily DecisionFamily(const DecisionTimes& times) {
  MetricFamily family{"tandem_decision_seconds",
                      "Time that a decision about training took, from the first look to the last signal",
                      MetricType::Histogram,
                      {}};
  ClientMetric metric;
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < times.counts.size(); ++i) {
    below += times.counts[i];
    const bool last = i == DecisionTimes::kBounds.size();
    const double bound = last ? std::numeric_limits<double>::infinity() : Seconds(DecisionTimes::kBounds[i]);
    metric.histogram.bucket.push_back({.cumulative_count = below, .upper_bound = bound});
  }
  metric.histogram.sample_count = below;
  metric.histogram.sample_sum = Seconds(times.sum);
  family.metric.push_back(std::move(metric));
  return family;
}

}  // namespace

std::vector<MetricFamily> ColocationFamilies(const ArbiterState& state) {
  MetricFamily cores{"tandem_cpu_limit_cores", "CPU limits that training is paced by", MetricType::Gauge, {}};
  MetricFamily throttled{"tandem_cpu_limit_throttled_periods_total",
                         "Periods of such a limit whose time was used up, as of the last look",
                         MetricType::Counter,
                         {}};
  for (const ArbiterState::Quota& quota : state.quotas) {
    if (!quota.limit) continue;
    ClientMetric metric;
    metric.label = {{"group", quota.group}};
    metric.gauge.value = quota.limit->cores();
    cores.metric.push_back(metric);
    metric.counter.value = static_cast<double>(quota.throttled_periods);
    throttled.metric.push_back(std::move(metric));
  }
  return {DecisionFamily(state.decisions), std::move(cores), std::move(throttled)};
}

}  // namespace tandem
