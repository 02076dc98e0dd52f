#include "bench/report.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <memory>

#include <json/json.h>

#include "api/base/format.h"
#include "api/wire/json_text.h"

namespace tandem::bench {
namespace {

// Six figures are more than any measurement here is good for.
std::string Number(double value) {
  return std::isfinite(value) ? Format("{:.6g}", value) : "null";
}

std::string Number(const std::optional<double>& value) {
  return value ? Number(*value) : "null";
}

// For people: at most four significant figures, never as 1e+04.
std::string Short(double value) {
  if (std::abs(value) >= 1000) return Format("{:.0f}", value);
  return Format("{:.4g}", value);
}

std::string BetterName(Better better) {
  return better == Better::kLower ? "lower" : "higher";
}

std::string RowJson(const Row& row) {
  const bool ran = row.not_run.empty();
  const auto figure = [&](double value) { return ran ? Number(value) : "null"; };
  return Format(
      "{{\"metric\": {}, \"cell\": {}, \"value\": {}, \"unit\": {}, \"low\": {}, \"high\": {}, \"repetitions\": {}, "
      "\"must\": {}, \"aim\": {}, \"better\": \"{}\", \"met\": {}{}}}",
      JsonString(row.metric), JsonString(row.cell), figure(row.value), JsonString(row.unit), figure(row.low),
      figure(row.high), row.repetitions, Number(row.must), Number(row.aim), BetterName(row.better), Met(row),
      ran ? "" : Format(", \"why\": {}", JsonString(row.not_run)));
}

std::string MachineJson(const Machine& machine) {
  return Format("{{\"cpu\": {}, \"cores\": {}, \"memory_gb\": {}, \"kernel\": {}, \"os\": {}, \"onnx_runtime\": {}}}",
                JsonString(machine.cpu), machine.cores, Number(machine.memory_gb), JsonString(machine.kernel),
                JsonString(machine.os), JsonString(machine.onnx_runtime));
}

Result<double> NumberField(const Json::Value& object, const char* name) {
  if (!object[name].isNumeric()) return Invalid("'{}' of a row is not a number", name);
  return object[name].asDouble();
}

Result<std::string> TextField(const Json::Value& object, const char* name) {
  if (!object[name].isString()) return Invalid("'{}' is missing or not text", name);
  return object[name].asString();
}

Result<std::optional<double>> OptionalField(const Json::Value& object, const char* name) {
  if (object[name].isNull()) return std::nullopt;
  TANDEM_ASSIGN(const double value, NumberField(object, name));
  return value;
}

Result<Row> ParseRow(const Json::Value& json) {
  if (!json.isObject()) return Invalid("a row is not an object");
  Row row;
  TANDEM_ASSIGN(row.metric, TextField(json, "metric"));
  TANDEM_ASSIGN(row.cell, TextField(json, "cell"));
  TANDEM_ASSIGN(row.unit, TextField(json, "unit"));
  if (json["value"].isNull()) {
    TANDEM_ASSIGN(row.not_run, TextField(json, "why"));
    if (row.not_run.empty()) return Invalid("'why' of a row without a value is empty");
  } else {
    TANDEM_ASSIGN(row.value, NumberField(json, "value"));
    TANDEM_ASSIGN(row.low, NumberField(json, "low"));
    TANDEM_ASSIGN(row.high, NumberField(json, "high"));
  }
  TANDEM_ASSIGN(const double repetitions, NumberField(json, "repetitions"));
  row.repetitions = static_cast<int>(std::clamp(repetitions, 0.0, 1e9));
  TANDEM_ASSIGN(row.must, OptionalField(json, "must"));
  TANDEM_ASSIGN(row.aim, OptionalField(json, "aim"));
  TANDEM_ASSIGN(const std::string better, TextField(json, "better"));
  if (better != "lower" && better != "higher") return Invalid("'better' is '{}', not lower or higher", Excerpt(better));
  row.better = better == "lower" ? Better::kLower : Better::kHigher;
  return row;
}

}  // namespace

bool Met(const Row& row) {
  if (!row.not_run.empty()) return false;
  if (!row.must) return true;
  return row.better == Better::kLower ? row.value <= *row.must : row.value >= *row.must;
}

bool Missed(const Row& row) {
  return row.must.has_value() && !Met(row);
}

double Median(std::vector<double> samples) {
  assert(!samples.empty());
  std::ranges::sort(samples);
  const std::size_t middle = samples.size() / 2;
  return samples.size() % 2 == 1 ? samples[middle] : (samples[middle - 1] + samples[middle]) / 2;
}

Row MakeRow(std::string metric, std::string cell, std::string unit, std::vector<double> samples, const Goal& goal) {
  const auto [low, high] = std::ranges::minmax(samples);
  return {.metric = std::move(metric),
          .cell = std::move(cell),
          .value = Median(samples),
          .unit = std::move(unit),
          .low = low,
          .high = high,
          .repetitions = static_cast<int>(samples.size()),
          .must = goal.must,
          .aim = goal.aim,
          .better = goal.better};
}

Row MakeRowNotRun(std::string metric, std::string cell, std::string unit, std::string why, const Goal& goal) {
  assert(!why.empty());
  Row row;
  row.metric = std::move(metric);
  row.cell = std::move(cell);
  row.unit = std::move(unit);
  row.must = goal.must;
  row.aim = goal.aim;
  row.better = goal.better;
  row.not_run = std::move(why);
  return row;
}

std::string ReportJson(const Report& report) {
  std::string rows;
  for (const Row& row : report.rows) {
    if (!rows.empty()) rows += ',';
    rows += "\n    " + RowJson(row);
  }
  return Format(
      "{{\n  \"scenario\": {},\n  \"date\": {},\n  \"commit\": {},\n  \"machine\": {},\n  \"rows\": [{}\n  ]\n}}\n",
      JsonString(report.scenario), JsonString(report.date), JsonString(report.commit), MachineJson(report.machine),
      rows);
}

Result<Report> ParseReport(std::string_view text) {
  Json::Value json;
  try {
    std::string problem;
    const std::unique_ptr<Json::CharReader> reader(Json::CharReaderBuilder().newCharReader());
    if (!reader->parse(text.data(), text.data() + text.size(), &json, &problem)) {
      return Invalid("not JSON: {}", Excerpt(problem));
    }
  } catch (const std::exception& e) {
    return Invalid("not JSON: {}", Excerpt(e.what()));
  }
  if (!json.isObject()) return Invalid("not a report: the JSON is no object");
  Report report;
  TANDEM_ASSIGN(report.scenario, TextField(json, "scenario"));
  TANDEM_ASSIGN(report.date, TextField(json, "date"));
  TANDEM_ASSIGN(report.commit, TextField(json, "commit"));
  if (!json["rows"].isArray()) return Invalid("'rows' is missing or no array");
  for (const Json::Value& row : json["rows"]) {
    TANDEM_ASSIGN(Row parsed, ParseRow(row));
    report.rows.push_back(std::move(parsed));
  }
  return report;
}

std::string ReportMarkdown(const Report& report) {
  const Machine& machine = report.machine;
  std::string out = Format("{}, {}, commit {}\n{}, {} cores, {:.0f} GB, Linux {}, {}, ONNX Runtime {}\n\n",
                           report.scenario, report.date, report.commit, machine.cpu, machine.cores, machine.memory_gb,
                           machine.kernel, machine.os, machine.onnx_runtime);
  out += "| metric | case | median | low – high | must | aim | met |\n|---|---|---:|---:|---:|---:|:-:|\n";
  std::map<std::string, int> reasons;
  for (const Row& row : report.rows) {
    const bool ran = row.not_run.empty();
    const char* sign = row.better == Better::kLower ? "≤" : "≥";
    const auto goal = [&](const std::optional<double>& bound) {
      return bound ? Format("{} {}", sign, Short(*bound)) : std::string();
    };
    const std::string figures =
        ran ? Format("{} {} | {} – {}", Short(row.value), row.unit, Short(row.low), Short(row.high)) : "not run | ";
    out += Format("| {} | {} | {} | {} | {} | {} |\n", row.metric, row.cell, figures, goal(row.must), goal(row.aim),
                  Missed(row) ? "**no**"
                  : row.must  ? "yes"
                              : "");
    if (!ran) ++reasons[row.not_run];
  }
  if (!reasons.empty()) out += '\n';
  for (const auto& [reason, rows] : reasons) {
    out += Format("not run ({} row{}): {}\n", rows, rows == 1 ? "" : "s", reason);
  }
  return out;
}

std::string MissedText(const Row& row) {
  if (!row.not_run.empty()) return Format("not run: {} ({}): {}", row.metric, row.cell, row.not_run);
  return Format("missed: {} ({}): {} {}, must be at {} {} {}", row.metric, row.cell, Short(row.value), row.unit,
                row.better == Better::kLower ? "most" : "least", Short(row.must.value_or(0)), row.unit);
}

std::string IsoDate(WallTime time) {
  return Format("{:%Y-%m-%dT%H:%M:%SZ}", std::chrono::floor<std::chrono::seconds>(time));
}

}  // namespace tandem::bench
