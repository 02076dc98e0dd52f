#include "loadgen/load_report.h"

#include <format>

#include "api/wire/json_text.h"

namespace tandem::loadgen {
namespace {

double Ms(std::chrono::nanoseconds duration) {
  return static_cast<double>(duration.count()) / 1e6;
}

std::string LatencyJson(const LatencyHistogram& histogram) {
  const LatencySummary s = Summarise(histogram);
  return std::format(
      "{{\"count\":{},\"min_ms\":{},\"mean_ms\":{},\"p50_ms\":{},\"p90_ms\":{},\"p95_ms\":{},\"p99_ms\":{},"
      "\"p99_9_ms\":{},\"p99_99_ms\":{},\"max_ms\":{}}}",
      s.count, Ms(s.min), Ms(s.mean), Ms(s.p50), Ms(s.p90), Ms(s.p95), Ms(s.p99), Ms(s.p99_9), Ms(s.p99_99), Ms(s.max));
}

std::string ModelJson(const ModelReport& model) {
  std::string failures;
  for (const auto& [reason, count] : model.failures) {
    if (!failures.empty()) failures += ',';
    failures += std::format("{}:{}", JsonString(reason), count);
  }
  return std::format(
      "{{\"model\":{},\"loop\":\"{}\",\"slo_ms\":{},\"scheduled\":{},\"ok\":{},\"late\":{},\"rejected\":{},"
      "\"failed\":{},\"failures\":{{{}}},\"offered_rate\":{},\"achieved_rate\":{},\"goodput\":{},\"attainment\":{},"
      "\"latency\":{},\"rejection_latency\":{}}}",
      JsonString(model.model), model.open_loop ? "open" : "closed",
      model.slo ? std::format("{}", Ms(*model.slo)) : "null", model.scheduled, model.counts.ok, model.counts.late,
      model.counts.rejected, model.counts.failed, failures, model.offered_rate, model.achieved_rate, model.goodput,
      model.attainment, LatencyJson(model.latency), LatencyJson(model.rejection_latency));
}

}  // namespace

void OutcomeCounts::Add(Outcome outcome) {
  switch (outcome) {
    case Outcome::kOk: ++ok; break;
    case Outcome::kLate: ++late; break;
    case Outcome::kRejected: ++rejected; break;
    case Outcome::kFailed: ++failed; break;
  }
}

std::chrono::nanoseconds LatencyOf(const RequestRecord& record, bool open_loop) {
  if (open_loop) return record.done - record.scheduled;
  return record.done - (record.sent == MonotonicTime{} ? record.submitted : record.sent);
}

Outcome OutcomeOf(const RequestRecord& record, std::chrono::nanoseconds latency,
                  std::optional<std::chrono::nanoseconds> slo) {
  if (record.outcome != TransportOutcome::kAnswered) return Outcome::kFailed;
  if (record.status == 503 || record.status == 429) return Outcome::kRejected;
  if (record.status < 200 || record.status > 299) return Outcome::kFailed;
  return slo && latency > *slo ? Outcome::kLate : Outcome::kOk;
}

std::string LoadReportJson(const LoadReport& report) {
  std::string models;
  for (const ModelReport& model : report.models) {
    if (!models.empty()) models += ',';
    models += ModelJson(model);
  }
  return std::format(
      "{{\"measured_s\":{},\"partial\":{},\"models\":[{}],\"generator\":{{\"send_lag\":{},\"queued\":{},"
      "\"cpu_share\":{}}}}}",
      Ms(report.measured) / 1e3, report.partial, models, LatencyJson(report.health.send_lag), report.health.queued,
      report.health.cpu_share);
}

}  // namespace tandem::loadgen
