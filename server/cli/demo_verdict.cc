#include "server/cli/demo_verdict.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <utility>

#include "api/base/duration.h"
#include "api/base/format.h"
#include "api/wire/json_text.h"
#include "server/cli/demo_digits.h"
#include "server/cli/demo_text.h"
#include "server/cli/plain_table.h"

namespace tandem::cli {
namespace {

using loadgen::LoadReport;
using loadgen::ModelReport;

// Those that there are, in the order of time.
std::vector<const LoadReport*> Reports(const DemoOutcome& outcome) {
  std::vector<const LoadReport*> reports;
  for (const auto* report : {&outcome.building, &outcome.alone, &outcome.beside, &outcome.after}) {
    if (*report) reports.push_back(&**report);
  }
  return reports;
}

struct Sum {
  loadgen::OutcomeCounts counts;
  std::uint64_t scheduled = 0;

  void Add(const ModelReport& model) {
    counts += model.counts;
    scheduled += model.scheduled;
  }
  [[nodiscard]] double attainment() const {
    return scheduled == 0 ? 0 : static_cast<double>(counts.ok) / static_cast<double>(scheduled);
  }
};

std::string Percentile(const std::optional<LoadReport>& report, std::size_t model, double percent) {
  if (!report || report->models[model].latency.count() == 0) return "-";
  return Format("{:.1f}", Ms(report->models[model].latency.Percentile(percent)));
}

// Of what the job has made; 0 when it is not served.
std::int64_t NewVersion(const DemoOutcome& outcome) {
  std::int64_t version = 0;
  if (outcome.training) {
    const std::string& text = outcome.training->job.published_version;
    std::from_chars(text.data(), text.data() + text.size(), version);
  }
  return version;
}

// Of the answers before the new version's, and of its own.
std::pair<VersionScore, VersionScore> BeforeAndAfter(const DemoOutcome& outcome) {
  if (!outcome.served || outcome.served->versions().empty()) return {};
  return {outcome.served->versions().begin()->second, outcome.served->Of(NewVersion(outcome))};
}

std::string TrainingText(const DemoOutcome& outcome) {
  const std::int64_t version = NewVersion(outcome);
  std::string text;
  if (outcome.training && outcome.training->job.step > 0) {
    text += Format("Trained {} steps beside the load", outcome.training->job.step);
    if (outcome.training->steps_per_second) text += Format(", {:.1f} a second", *outcome.training->steps_per_second);
    text += version > 0 ? Format("; published as version {} of {}.\n", version, kDigitsModel) : ".\n";
  }
  if (outcome.served && !outcome.served->versions().empty()) text += ServedLine(*outcome.served) + ".\n";
  const auto [before, after] = BeforeAndAfter(outcome);
  if (after.answers > 0) {
    text += Format("Accuracy of what is served, on pictures that no job has seen: {:.1f} % → {:.1f} %.\n",
                   100 * before.accuracy(), 100 * after.accuracy());
    if (after.accuracy() <= before.accuracy()) text += "The new version is no better.\n";
  } else if (!outcome.not_trained.empty()) {
    text += Format("Not trained: {}\n", outcome.not_trained);
  } else if (outcome.training && !outcome.training->problem.empty()) {
    text += Format("No new version: {}\n", outcome.training->problem);
  } else if (version > 0 && !outcome.interrupted) {
    text += Format("Version {} has answered no request.\n", version);
  }
  return text;
}

// JSON of training; `null` when there was none.
std::string TrainingJson(const DemoOutcome& outcome) {
  if (!outcome.training) return "null";
  const auto [before, after] = BeforeAndAfter(outcome);
  std::string versions;
  for (const auto& [version, score] : outcome.served->versions()) {
    versions += Format(R"({}"{}":{{"answers":{},"accuracy":{}}})", versions.empty() ? "" : ",", version, score.answers,
                       score.accuracy());
  }
  const TrainingStatus& training = *outcome.training;
  return Format(R"({{"state":{},"steps":{},"steps_per_second":{},"published_version":{},"versions":{{{}}},)"
                R"("accuracy_before":{},"accuracy_after":{},"problem":{}}})",
                JsonString(training.job.state), training.job.step,
                training.steps_per_second ? Format("{}", *training.steps_per_second) : "null",
                JsonString(training.job.published_version), versions, before.accuracy(),
                after.answers > 0 ? Format("{}", after.accuracy()) : "null", JsonString(training.problem));
}

}  // namespace

DemoVerdict JudgeDemo(const DemoOutcome& outcome) {
  Sum all;
  for (const LoadReport* report : Reports(outcome)) {
    for (const ModelReport& model : report->models) all.Add(model);
  }
  DemoVerdict verdict;
  if (outcome.training_wanted) verdict.text = TrainingText(outcome);
  verdict.text +=
      Format("{}{:.2f} % of {} requests answered within their SLO, {} failed.\n",
             outcome.interrupted ? "Interrupted. " : "", 100 * all.attainment(), all.scheduled, all.counts.failed);
  const auto [before, after] = BeforeAndAfter(outcome);
  const bool learnt = after.answers > 0 && after.accuracy() > before.accuracy();
  verdict.passed = all.counts.failed == 0 && all.counts.answered() > 0 && !outcome.interrupted &&
                   (learnt || !outcome.training_wanted);
  return verdict;
}

std::string DemoTable(const DemoOutcome& outcome) {
  const std::vector<const LoadReport*> reports = Reports(outcome);
  if (reports.empty()) return "";
  const bool training = outcome.beside.has_value();
  TableRows rows = {{"model", "answered", "req/s", "p50 ms", "p99 ms"}};
  const bool compared = training && outcome.unmanaged;
  if (training) rows[0] = {"model", "answered", "p50 ms alone", "training", "p99 ms alone", "training"};
  if (compared)
    rows[0] = {"model", "answered", "p50 ms alone", "unmanaged", "training", "p99 ms alone", "unmanaged", "training"};
  rows[0].insert(rows[0].end(), {"SLO ms", "in time", "late", "refused", "failed"});
  for (std::size_t i = 0; i < reports[0]->models.size(); ++i) {
    Sum sum;
    for (const LoadReport* report : reports) sum.Add(report->models[i]);
    // Planned anew after a build.
    const ModelReport& first = outcome.alone ? outcome.alone->models[i] : reports[0]->models[i];
    std::vector<std::string>& row = rows.emplace_back();
    row = {first.model, std::to_string(sum.counts.answered())};
    if (!training) row.push_back(outcome.alone ? Format("{:.1f}", outcome.alone->models[i].achieved_rate) : "-");
    for (const double percent : {50.0, 99.0}) {
      row.push_back(Percentile(outcome.alone, i, percent));
      if (compared) row.push_back(Percentile(outcome.unmanaged, i, percent));
      if (training) row.push_back(Percentile(outcome.beside, i, percent));
    }
    row.insert(row.end(), {Format("{:.0f}", first.slo ? Ms(*first.slo) : 0), Format("{:.2f} %", 100 * sum.attainment()),
                           std::to_string(sum.counts.late), std::to_string(sum.counts.rejected),
                           std::to_string(sum.counts.failed)});
  }
  return PlainTable(rows);
}

std::string DemoJson(const DemoOutcome& outcome) {
  if (!outcome.training_wanted) return outcome.alone ? LoadReportJson(*outcome.alone) : "null";
  const auto part = [](const std::optional<LoadReport>& report) {
    return report ? LoadReportJson(*report) : std::string("null");
  };
  return Format(R"({{"alone":{},"unmanaged":{},"unmanaged_steps_per_second":{},"beside_training":{},"after":{},)"
                R"("training":{}}})",
                part(outcome.alone), part(outcome.unmanaged),
                outcome.unmanaged_rate ? Format("{}", *outcome.unmanaged_rate) : "null", part(outcome.beside),
                part(outcome.after), TrainingJson(outcome));
}

}  // namespace tandem::cli
