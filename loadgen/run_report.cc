#include "loadgen/run_report.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "api/base/format.h"
#include "api/wire/json_text.h"
#include "loadgen/report_page.h"

namespace tandem::loadgen {
namespace {

template <typename Item, typename Text>
std::string Joined(const std::vector<Item>& items, Text text) {
  std::string all = "[";
  for (const Item& item : items) {
    if (all.size() > 1) all += ',';
    all += text(item);
  }
  return all + "]";
}

// Of all loads on one model.
double ClientMean(const LoadReport& load, const std::string& model) {
  LatencyHistogram latency;
  for (const ModelReport& report : load.models) {
    if (report.model == model) latency.Merge(report.latency);
  }
  return static_cast<double>(latency.Mean().count()) / 1e6;
}

std::string ServerViewJson(const LoadReport& load, const ServerView& view) {
  return Format(R"({{"model":{},"requests":{},"queue_ms":{},"compute_ms":{},"total_ms":{},"client_ms":{}}})",
                JsonString(view.model), view.requests, view.queue_ms, view.compute_ms, view.total_ms,
                ClientMean(load, view.model));
}

}  // namespace

std::string_view RunResultName(RunResult result) {
  switch (result) {
    case RunResult::kNone: return "none";
    case RunResult::kPass: return "pass";
    case RunResult::kFail: return "fail";
    case RunResult::kInconclusive: return "inconclusive";
    case RunResult::kInvalid: return "invalid";
  }
  return "unknown";
}

Result<RunReport> JudgeRun(LoadReport load, double percentile, double confidence) {
  RunReport report;
  std::optional<std::chrono::nanoseconds> tightest;
  for (const ModelReport& model : load.models) {
    std::optional<Verdict>& verdict = report.verdicts.emplace_back();
    if (!model.slo) continue;
    tightest = tightest ? std::min(*tightest, *model.slo) : *model.slo;
    const LatencyTarget target{.bound = *model.slo, .percentile = percentile, .confidence = confidence};
    // A request of a stopped run that has no outcome says nothing yet; every other one without a timely answer missed.
    const std::uint64_t offered = load.partial ? model.counts.total() : model.scheduled;
    TANDEM_ASSIGN(verdict, Judge(target, offered, offered - model.counts.ok));
  }
  report.problems = GeneratorProblems(load.health, tightest);
  report.load = std::move(load);
  return report;
}

RunResult ResultOf(const RunReport& report) {
  if (std::ranges::any_of(report.load.models, [](const ModelReport& model) { return model.wrong > 0; })) {
    return RunResult::kFail;
  }
  const bool judged = std::ranges::any_of(report.verdicts, [](const auto& verdict) { return verdict.has_value(); });
  if (!report.problems.empty() || (report.load.partial && judged)) return RunResult::kInvalid;
  if (!judged) return RunResult::kNone;
  const auto any = [&](VerdictKind kind) {
    return std::ranges::any_of(report.verdicts, [kind](const auto& v) { return v && v->kind == kind; });
  };
  if (any(VerdictKind::kFail)) return RunResult::kFail;
  return any(VerdictKind::kInconclusive) ? RunResult::kInconclusive : RunResult::kPass;
}

std::string RunReportJson(const RunReport& report) {
  std::string models;
  for (std::size_t i = 0; i < report.load.models.size(); ++i) {
    if (i > 0) models += ',';
    std::string model = ModelReportJson(report.load.models[i]);
    model.pop_back();  // The closing brace.
    models += Format(R"({},"verdict":{}}})", model,
                     report.verdicts[i] ? VerdictJson(*report.verdicts[i]) : std::string("null"));
  }
  return Format(
      R"({{"date":{},"command":{},"url":{},"server":{},"result":"{}","problems":{},"measured_s":{},"partial":{},)"
      R"("models":[{}],"generator":{},"server_view":{},"training":{}}})",
      JsonString(report.date), JsonString(report.command), JsonString(report.url), JsonString(report.server),
      RunResultName(ResultOf(report)), Joined(report.problems, [](const std::string& p) { return JsonString(p); }),
      static_cast<double>(report.load.measured.count()) / 1e9, report.load.partial, models,
      GeneratorJson(report.load.health),
      Joined(report.server_view, [&](const ServerView& view) { return ServerViewJson(report.load, view); }),
      TrainingJson(report.training, report.load.start));
}

std::string RunReportHtml(const RunReport& report) {
  constexpr std::string_view kPlace = "@REPORT@";
  const std::string_view page = ReportPage();
  const std::size_t place = page.find(kPlace);
  std::string html(page.substr(0, place));
  // No string in it may end the element that holds it.
  for (const char c : RunReportJson(report)) {
    if (c == '<') {
      html += "\\u003c";
    } else {
      html += c;
    }
  }
  html += page.substr(place + kPlace.size());
  return html;
}

}  // namespace tandem::loadgen
