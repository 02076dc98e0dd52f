#include "server/metrics/model_collector.h"

#include <array>
#include <string>
#include <utility>

#include <prometheus/metric_type.h>

namespace tandem {
namespace {

struct CounterSpec {
  const char* name;
  const char* help;
  std::uint64_t (*value)(const ModelTotals&);
};

constexpr std::uint64_t Micros(const DurationTotal& total) {
  return total.ns / 1000;
}

constexpr std::array<CounterSpec, 8> kCounters = {{
    {"nv_inference_request_success", "Number of successful inference requests, all batch sizes",
     [](const ModelTotals& t) { return t.success.count; }},
    {"nv_inference_count", "Number of inferences performed; a batch of n counts n",
     [](const ModelTotals& t) { return t.inference_count; }},
    {"nv_inference_exec_count", "Number of model executions performed",
     [](const ModelTotals& t) { return t.execution_count; }},
    {"nv_inference_request_duration_us", "Cumulative inference request duration in microseconds",
     [](const ModelTotals& t) { return Micros(t.success); }},
    {"nv_inference_queue_duration_us", "Cumulative inference queuing duration in microseconds",
     [](const ModelTotals& t) { return Micros(t.queue); }},
    {"nv_inference_compute_input_duration_us", "Cumulative compute input duration in microseconds",
     [](const ModelTotals& t) { return Micros(t.compute_input); }},
    {"nv_inference_compute_infer_duration_us", "Cumulative compute inference duration in microseconds",
     [](const ModelTotals& t) { return Micros(t.compute_infer); }},
    {"nv_inference_compute_output_duration_us", "Cumulative inference compute output duration in microseconds",
     [](const ModelTotals& t) { return Micros(t.compute_output); }},
}};

// In the order of FailureReason.
constexpr std::array<const char*, kFailureReasonCount> kReasons = {"REJECTED", "CANCELED", "BACKEND", "OTHER"};

prometheus::ClientMetric Labelled(const Servable& servable) {
  prometheus::ClientMetric metric;
  metric.label = {{"model", servable.name()}, {"version", servable.version_text()}};
  return metric;
}

prometheus::MetricFamily Gauge(const char* name, const char* help, double value) {
  prometheus::MetricFamily family{name, help, prometheus::MetricType::Gauge, {}};
  prometheus::ClientMetric metric;
  metric.gauge.value = value;
  family.metric.push_back(std::move(metric));
  return family;
}

prometheus::MetricFamily Failures(const std::vector<std::shared_ptr<Servable>>& servables,
                                  const std::vector<ModelTotals>& totals) {
  prometheus::MetricFamily family{"nv_inference_request_failure",
                                  "Number of failed inference requests, all batch sizes",
                                  prometheus::MetricType::Counter,
                                  {}};
  for (std::size_t i = 0; i < servables.size(); ++i) {
    for (std::size_t reason = 0; reason < kReasons.size(); ++reason) {
      prometheus::ClientMetric metric = Labelled(*servables[i]);
      metric.label.push_back({"reason", kReasons[reason]});
      metric.counter.value = static_cast<double>(totals[i].failures[reason]);
      family.metric.push_back(std::move(metric));
    }
  }
  return family;
}

prometheus::MetricFamily Bounds(const std::vector<std::shared_ptr<Servable>>& servables) {
  prometheus::MetricFamily family{"tandem_run_predicted_bound_total",
                                  "Runs by whether they kept within the time that admission relies on; one in twenty "
                                  "should exceed it",
                                  prometheus::MetricType::Counter,
                                  {}};
  for (const auto& servable : servables) {
    const RunBounds& bounds = servable->run_bounds();
    for (const auto& [outcome, count] :
         {std::pair{"within", bounds.within()}, std::pair{"exceeded", bounds.exceeded()}}) {
      prometheus::ClientMetric metric = Labelled(*servable);
      metric.label.push_back({"outcome", outcome});
      metric.counter.value = static_cast<double>(count);
      family.metric.push_back(std::move(metric));
    }
  }
  return family;
}

prometheus::MetricFamily RunsByWidth(const std::vector<std::shared_ptr<Servable>>& servables) {
  prometheus::MetricFamily family{"tandem_run_threads_total",
                                  "Runs by how many threads of the device they could use: one, or all",
                                  prometheus::MetricType::Counter,
                                  {}};
  for (const auto& servable : servables) {
    for (const auto& [threads, width] : {std::pair{"one", RunWidth::kOne}, std::pair{"all", RunWidth::kAll}}) {
      prometheus::ClientMetric metric = Labelled(*servable);
      metric.label.push_back({"threads", threads});
      metric.counter.value = static_cast<double>(servable->runs(width));
      family.metric.push_back(std::move(metric));
    }
  }
  return family;
}

void AppendProcess(double utilization, std::vector<prometheus::MetricFamily>& families) {
  const ProcessUsage usage = ReadProcessUsage();
  const MemoryUsage memory = ReadMemoryUsage();
  families.push_back(
      Gauge("nv_cpu_utilization", "CPU utilization of the machine since the last scrape, 0.0 to 1.0", utilization));
  families.push_back(
      Gauge("nv_cpu_memory_total_bytes", "CPU total memory (RAM), in bytes", static_cast<double>(memory.total_bytes)));
  families.push_back(
      Gauge("nv_cpu_memory_used_bytes", "CPU used memory (RAM), in bytes", static_cast<double>(memory.used_bytes)));
  families.push_back(Gauge("process_resident_memory_bytes", "Resident memory size in bytes",
                           static_cast<double>(usage.resident_bytes)));
  families.push_back(Gauge("process_open_fds", "Number of open file descriptors", static_cast<double>(usage.open_fds)));
  families.push_back(Gauge("process_threads", "Number of threads", static_cast<double>(usage.threads)));
}

}  // namespace

std::vector<prometheus::MetricFamily> ModelCollector::Collect() {
  const std::vector<std::shared_ptr<Servable>> servables = served_();
  std::vector<ModelTotals> totals;
  totals.reserve(servables.size());
  for (const auto& servable : servables) totals.push_back(servable->statistics().Totals());

  std::vector<prometheus::MetricFamily> families;
  for (const CounterSpec& spec : kCounters) {
    prometheus::MetricFamily family{spec.name, spec.help, prometheus::MetricType::Counter, {}};
    for (std::size_t i = 0; i < servables.size(); ++i) {
      prometheus::ClientMetric metric = Labelled(*servables[i]);
      metric.counter.value = static_cast<double>(spec.value(totals[i]));
      family.metric.push_back(std::move(metric));
    }
    families.push_back(std::move(family));
  }
  families.push_back(Failures(servables, totals));
  families.push_back(Bounds(servables));
  families.push_back(RunsByWidth(servables));
  prometheus::MetricFamily pending{"nv_inference_pending_request_count",
                                   "Instantaneous number of pending requests awaiting execution",
                                   prometheus::MetricType::Gauge,
                                   {}};
  for (const auto& servable : servables) {
    prometheus::ClientMetric metric = Labelled(*servable);
    metric.gauge.value = static_cast<double>(pending_(*servable));
    pending.metric.push_back(std::move(metric));
  }
  families.push_back(std::move(pending));
  AppendProcess(cpu_.At(ReadCpuTimes()), families);
  return families;
}

}  // namespace tandem
