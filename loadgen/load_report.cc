#include "loadgen/load_report.h"

#include <algorithm>
#include <iterator>

#include "api/base/duration.h"
#include "api/base/format.h"
#include "api/wire/json_text.h"

namespace tandem::loadgen {
namespace {

// What the generator itself may add to a latency.
constexpr std::chrono::milliseconds kMaxSendLag{1};
constexpr int kSloSharesOfLag = 20;
// A thread that has no time left sends late, and hears late of answers.
constexpr double kMaxCpuShare = 0.95;

std::string LatencyJson(const LatencyHistogram& histogram) {
  const LatencySummary s = Summarise(histogram);
  return Format(
      "{{\"count\":{},\"min_ms\":{},\"mean_ms\":{},\"p50_ms\":{},\"p90_ms\":{},\"p95_ms\":{},\"p99_ms\":{},"
      "\"p99_9_ms\":{},\"p99_99_ms\":{},\"max_ms\":{}}}",
      s.count, Ms(s.min), Ms(s.mean), Ms(s.p50), Ms(s.p90), Ms(s.p95), Ms(s.p99), Ms(s.p99_9), Ms(s.p99_99), Ms(s.max));
}

template <typename Value>
std::string ListJson(const std::vector<TimeSeries::Point>& points, Value value) {
  std::string text = "[";
  for (const TimeSeries::Point& point : points) {
    if (text.size() > 1) text += ',';
    AppendFormat(text, "{}", value(point));
  }
  return text + "]";
}

// The slots as one list for each figure; a latency of nothing answered is 0.
std::string TimelineJson(const TimeSeries& timeline) {
  using Point = TimeSeries::Point;
  const std::vector<Point> points = timeline.Points();
  return Format(
      "{{\"width_s\":{},\"ok\":{},\"late\":{},\"rejected\":{},\"failed\":{},\"p50_ms\":{},\"p99_ms\":{},\"max_ms\":{}}"
      "}",
      Ms(timeline.width()) / 1e3, ListJson(points, [](const Point& p) { return p.counts.ok; }),
      ListJson(points, [](const Point& p) { return p.counts.late; }),
      ListJson(points, [](const Point& p) { return p.counts.rejected; }),
      ListJson(points, [](const Point& p) { return p.counts.failed; }),
      ListJson(points, [](const Point& p) { return Ms(p.p50); }),
      ListJson(points, [](const Point& p) { return Ms(p.p99); }),
      ListJson(points, [](const Point& p) { return Ms(p.max); }));
}

// [latency in ms, percent of the answered requests that took no longer], denser towards the end.
std::string DistributionJson(const LatencyHistogram& histogram) {
  if (histogram.count() == 0) return "[]";
  std::string text = "[";
  const auto add = [&](double percent) {
    if (text.size() > 1) text += ',';
    AppendFormat(text, "[{},{}]", Ms(histogram.Percentile(percent)), percent);
  };
  for (int percent = 0; percent < 99; ++percent) add(percent);
  for (int tenth = 990; tenth < 999; ++tenth) add(tenth / 10.0);
  for (int hundredth = 9990; hundredth <= 9999; ++hundredth) add(hundredth / 100.0);
  add(100);
  return text + "]";
}

// Where comparing answers is what the generator had no time for.
std::string CheckHint(const GeneratorHealth& health, std::chrono::nanoseconds bound) {
  const std::chrono::nanoseconds check = health.check.Percentile(99);
  if (check < bound / 4) return "";
  return Format("; to compare an answer takes up to {:.2f} ms: --check-every N compares fewer", Ms(check));
}

}  // namespace

std::string ModelReportJson(const ModelReport& model) {
  std::string failures;
  for (const auto& [reason, count] : model.failures) {
    if (!failures.empty()) failures += ',';
    failures += Format("{}:{}", JsonString(reason), count);
  }
  return Format(
      "{{\"name\":{},\"model\":{},\"loop\":\"{}\",\"slo_ms\":{},\"scheduled\":{},\"ok\":{},\"late\":{},\"rejected\":{},"
      "\"failed\":{},\"failures\":{{{}}},\"checked\":{},\"wrong_answers\":{},\"first_wrong_answer\":{},\"offered_"
      "rate\":{},\"achieved_rate\":{},\"goodput\":{},\"attainment\":{},"
      "\"latency\":{},\"rejection_latency\":{},\"timeline\":{},\"distribution\":{}}}",
      JsonString(model.name.empty() ? model.model : model.name), JsonString(model.model),
      model.open_loop ? "open" : "closed", model.slo ? Format("{}", Ms(*model.slo)) : "null", model.scheduled,
      model.counts.ok, model.counts.late, model.counts.rejected, model.counts.failed, failures, model.checked,
      model.wrong, JsonString(model.first_wrong), model.offered_rate, model.achieved_rate, model.goodput,
      model.attainment, LatencyJson(model.latency), LatencyJson(model.rejection_latency), TimelineJson(model.timeline),
      DistributionJson(model.latency));
}

std::string GeneratorJson(const GeneratorHealth& health) {
  return Format("{{\"send_lag\":{},\"queued\":{},\"cpu_share\":{},\"check\":{}}}", LatencyJson(health.send_lag),
                health.queued, health.cpu_share, LatencyJson(health.check));
}

std::vector<std::string> GeneratorProblems(const GeneratorHealth& health,
                                           std::optional<std::chrono::nanoseconds> tightest_slo) {
  std::vector<std::string> problems;
  std::chrono::nanoseconds bound = kMaxSendLag;
  if (tightest_slo) bound = std::max(bound, *tightest_slo / kSloSharesOfLag);
  if (const auto lag = health.send_lag.Percentile(99); lag > bound) {
    problems.push_back(Format("requests were sent late: p99 of the lag is {:.2f} ms, at most {:.2f} ms is allowed{}",
                              Ms(lag), Ms(bound), CheckHint(health, bound)));
  }
  if (health.cpu_share > kMaxCpuShare) {
    problems.push_back(Format("the generator's thread was busy for {:.0f} % of the time, at most {:.0f} % is allowed",
                              100 * health.cpu_share, 100 * kMaxCpuShare));
  }
  return problems;
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
    models += ModelReportJson(model);
  }
  return Format("{{\"measured_s\":{},\"partial\":{},\"models\":[{}],\"generator\":{}}}", Ms(report.measured) / 1e3,
                report.partial, models, GeneratorJson(report.health));
}

}  // namespace tandem::loadgen
