#include "bench/runner.h"

#include <algorithm>
#include <format>
#include <set>
#include <utility>

namespace tandem::bench {
namespace {

bool Chosen(const RowSpec& row, const Selection& selection) {
  return selection.only.empty() ||
         std::ranges::any_of(selection.only, [&](const std::string& text) { return row.title().contains(text); });
}

Status RunPart(const ScenarioPart& part, const Pace& pace, const Selection& selection, BenchContext& context,
               Report& report) {
  std::vector<RowSpec> rows;
  std::set<std::string> wanted;
  for (const RowSpec& row : part.rows) {
    if (!Chosen(row, selection)) continue;
    const std::vector<std::string> series = row.series();
    wanted.insert(series.begin(), series.end());
    rows.push_back(row);
  }
  if (rows.empty()) return {};
  TANDEM_TRY(context.CheckStop());
  context.pace = pace;
  TANDEM_ASSIGN(const SeriesMap series, part.measurement->Run(context, wanted));
  for (RowSpec& row : rows) {
    TANDEM_ASSIGN(row.cell, FillPlaceholders(row.cell, {{"threads", std::to_string(context.threads)}}));
    report.rows.push_back(ComputeRow(row, series));
  }
  return {};
}

}  // namespace

Status CheckSelection(const Scenario& scenario, const Selection& selection) {
  for (const std::string& text : selection.only) {
    std::string titles;
    bool found = false;
    for (const ScenarioPart& part : scenario.parts) {
      for (const RowSpec& row : part.rows) {
        found = found || row.title().contains(text);
        titles += "\n  " + row.title();
      }
    }
    if (!found) return Invalid("--only '{}' is in no row of '{}'; these are:{}", text, scenario.name, titles);
  }
  return {};
}

Result<Report> RunScenario(const Scenario& scenario, const Selection& selection, BenchContext& context) {
  TANDEM_TRY(CheckSelection(scenario, selection));
  Report report;
  report.scenario = scenario.name;
  for (const ScenarioPart& part : scenario.parts) {
    const Pace pace = selection.quick ? part.quick.value_or(scenario.quick) : part.full.value_or(scenario.full);
    TANDEM_TRY(RunPart(part, pace, selection, context, report));
  }
  return report;
}

}  // namespace tandem::bench
