#include "bench/row_spec.h"

#include <algorithm>
#include <cassert>
#include <format>
#include <utility>

#include "api/wire/json_text.h"
#include "bench/peer_spec.h"

namespace tandem::bench {
namespace {

struct Unit {
  std::string_view name;
  double factor;  // Of a sample in seconds, bytes or plain numbers.
};

constexpr Unit kUnits[] = {{"s", 1},        {"ms", 1e3},    {"µs", 1e6},     {"ns", 1e9},
                           {"KB", 1e-3},    {"MB", 1e-6},   {"MB/s", 1e-6},  {"requests/s", 1},
                           {"%", 100},      {"×", 1},       {"cores", 1},    {"connections", 1},
                           {"requests", 1}, {"steps/s", 1}, {"policies", 1}, {"layers", 1}};

constexpr double kMostGoal = 1e15;

double FactorOf(std::string_view unit) {
  const auto* const found = std::ranges::find(kUnits, unit, &Unit::name);
  assert(found != std::end(kUnits));
  return found->factor;
}

std::string KnownUnits() {
  std::string names;
  for (const Unit& unit : kUnits) names += (names.empty() ? "" : ", ") + std::string(unit.name);
  return names;
}

std::string Joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

Result<Goal> ParseGoal(JsonFields& fields) {
  Goal goal;
  TANDEM_ASSIGN(goal.must, fields.OptionalNumber("must", -kMostGoal, kMostGoal));
  TANDEM_ASSIGN(goal.aim, fields.OptionalNumber("aim", -kMostGoal, kMostGoal));
  TANDEM_ASSIGN(const std::string better, fields.TextOr("better", "lower"));
  if (better != "lower" && better != "higher") {
    return Invalid("{}: must be lower or higher, not '{}'", fields.At("better"), Excerpt(better));
  }
  goal.better = better == "lower" ? Better::kLower : Better::kHigher;
  return goal;
}

}  // namespace

std::vector<std::string> RowSpec::series() const {
  std::vector<std::string> names = over;
  names.insert(names.begin(), of);
  if (!minus.empty()) names.push_back(minus);
  return names;
}

Result<RowSpec> ParseRowSpec(JsonFields fields, const std::vector<std::string>& known) {
  RowSpec row;
  TANDEM_ASSIGN(row.metric, fields.Text("metric"));
  TANDEM_ASSIGN(row.cell, fields.Text("cell"));
  TANDEM_ASSIGN(row.of, fields.Text("of"));
  TANDEM_ASSIGN(row.minus, fields.TextOr("minus", ""));
  TANDEM_ASSIGN(row.over, fields.Texts("over"));
  TANDEM_ASSIGN(row.unit, fields.Text("unit"));
  TANDEM_ASSIGN(row.goal, ParseGoal(fields));
  TANDEM_TRY(fields.Finish());
  if (const auto filled = FillPlaceholders(row.cell, {{"threads", ""}}); !filled) {
    return Invalid("{}: {}", fields.At("cell"), filled.error().message);
  }
  for (const std::string& name : row.series()) {
    if (!std::ranges::contains(known, name)) {
      return Invalid("{}: this measurement has no series '{}'; it has {}", fields.pointer(), Excerpt(name),
                     Joined(known));
    }
  }
  if (!std::ranges::contains(kUnits, row.unit, &Unit::name)) {
    return Invalid("{}: must be one of {}, not '{}'", fields.At("unit"), KnownUnits(), Excerpt(row.unit));
  }
  return row;
}

Row ComputeRow(const RowSpec& spec, const SeriesMap& series) {
  for (const std::string& name : spec.series()) {
    const Series& one = series.at(name);
    if (one.not_run.empty() && !one.samples.empty()) continue;
    return MakeRowNotRun(spec.metric, spec.cell, spec.unit, one.not_run.empty() ? "no samples" : one.not_run,
                         spec.goal);
  }
  std::vector<double> samples = series.at(spec.of).samples;
  const double factor = FactorOf(spec.unit);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (!spec.minus.empty()) samples[i] -= series.at(spec.minus).samples.at(i);
    double divisor = 0;
    for (const std::string& name : spec.over) {
      const double other = series.at(name).samples.at(i);
      const bool worse = spec.goal.better == Better::kHigher ? other > divisor : other < divisor;
      if (&name == &spec.over.front() || worse) divisor = other;
    }
    if (!spec.over.empty()) samples[i] /= divisor;
    samples[i] *= factor;
  }
  return MakeRow(spec.metric, spec.cell, spec.unit, std::move(samples), spec.goal);
}

}  // namespace tandem::bench
