#include "server/metrics/memory_collector.h"

#include <string>
#include <utility>

namespace tandem {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

MetricFamily Gauge(const char* name, const char* help, std::uint64_t value) {
  MetricFamily family{name, help, MetricType::Gauge, {}};
  family.metric.emplace_back().gauge.value = static_cast<double>(value);
  return family;
}

}  // namespace

std::vector<MetricFamily> MemoryFamilies(const MemoryMap& map) {
  MetricFamily lanes{"tandem_lane_bytes", "Memory of each lane, in which sessions take turns", MetricType::Gauge, {}};
  for (const Lane& lane : map.lanes) {
    ClientMetric metric;
    metric.label = {{"lane", std::to_string(std::to_underlying(lane.id))}};
    metric.gauge.value = static_cast<double>(lane.counted());
    lanes.metric.push_back(std::move(metric));
  }
  return {Gauge("tandem_memory_budget_bytes", "Memory that is shared out", map.budget.bytes),
          Gauge("tandem_memory_persistent_bytes", "Promised for weights, optimizers and the server's own part",
                map.use.persistent),
          Gauge("tandem_memory_ephemeral_bytes", "Promised for runs and steps", map.use.lanes),
          Gauge("tandem_memory_overhang_bytes", "In use beyond the budget", map.overhang),
          Gauge("tandem_memory_waiting_sessions", "Jobs that wait for memory", map.waiting.size()),
          std::move(lanes)};
}

}  // namespace tandem
