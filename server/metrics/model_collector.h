#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <prometheus/metric_family.h>

#include "colocation/servable.h"
#include "server/metrics/process_usage.h"

namespace tandem {

// Makes Triton's metrics (nv_inference_*, nv_cpu_*) from the statistics of whatever is served at the time of a scrape,
// so that existing dashboards work, how well the bounds of their runs hold, and those of the process. Called for each
// scrape. Thread-safe.
class ModelCollector {
 public:
  using Served = std::function<std::vector<std::shared_ptr<Servable>>()>;
  using Pending = std::function<std::size_t(const Servable&)>;

  ModelCollector(Served served, Pending pending) : served_(std::move(served)), pending_(std::move(pending)) {}

  [[nodiscard]] std::vector<prometheus::MetricFamily> Collect();

 private:
  // Constant after construction.
  const Served served_;
  const Pending pending_;

  CpuUtilization cpu_;
};

}  // namespace tandem
