#include "server/metrics/colocation_collector.h"

#include <utility>

#include "server/metrics/histogram_family.h"

namespace tandem {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

MetricFamily DecisionFamily(const char* name, const char* help, const DecisionTimes& times) {
  return HistogramFamily(
      name, help, times.counts, [](std::size_t bucket) { return DecisionTimes::kBounds[bucket]; }, times.sum);
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
  return {DecisionFamily("tandem_decision_seconds", "Time that a decision about training took", state.decisions),
          DecisionFamily("tandem_decision_applied_seconds",
                         "The same and until the last trainer had its order or its signal", state.applied),
          std::move(cores), std::move(throttled)};
}

std::vector<MetricFamily> TurnFamilies(const TurnsState& state) {
  MetricFamily switches{
      "tandem_job_switches_total", "Turns that went from one training job to another", MetricType::Counter, {}};
  switches.metric.emplace_back().counter.value = static_cast<double>(state.switches);
  return {std::move(switches),
          HistogramFamily("tandem_job_switch_seconds",
                          "Time from when a training job came to the boundary that ended its turn until the next ran",
                          state.switch_times.counts, AcknowledgementTimes::Bound, state.switch_times.sum)};
}

}  // namespace tandem
