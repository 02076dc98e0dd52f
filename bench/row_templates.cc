#include "bench/row_templates.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/base/format.h"
#include "api/wire/json_document.h"
#include "api/wire/json_text.h"

namespace tandem::bench {
namespace {

constexpr std::string_view kEach = "{each}";

double QuotaOf(const Json::Value& measurement) {
  const Json::Value& quota = measurement["quota"];
  return quota.isNumeric() ? quota.asDouble() : 0;
}

void FillEach(Json::Value& text, const std::string& item) {
  for (Json::Value& part : text) FillEach(part, item);
  if (!text.isString()) return;
  std::string filled = text.asString();
  for (std::size_t at = 0; (at = filled.find(kEach, at)) != std::string::npos; at += item.size()) {
    filled.replace(at, kEach.size(), item);
  }
  text = filled;
}

Result<std::vector<std::string>> TextsOf(const Json::Value& list, const std::string& pointer) {
  std::vector<std::string> texts;
  const bool good = list.isArray() && std::ranges::all_of(list, [](const Json::Value& v) { return v.isString(); });
  if (!good) return Invalid("{}: must be a list of texts, not {}", pointer, JsonExcerpt(list));
  for (const Json::Value& text : list) texts.push_back(text.asString());
  return texts;
}

// What a row is "for": its own list, or that of a field of its measurement; without those in "except".
Result<std::vector<std::string>> ItemsOf(const Json::Value& row, const Json::Value& measurement,
                                         const std::string& pointer) {
  const Json::Value& list = row["for"];
  const Json::Value& found = list.isString() ? measurement[list.asString()] : list;
  TANDEM_ASSIGN(std::vector<std::string> items, TextsOf(found, JsonPointer(pointer, "for")));
  if (row.isMember("except")) {
    TANDEM_ASSIGN(const auto except, TextsOf(row["except"], JsonPointer(pointer, "except")));
    std::erase_if(items, [&](const std::string& item) { return std::ranges::contains(except, item); });
  }
  return items;
}

Status SetGoals(Json::Value& row, bool under_quota, const std::string& pointer) {
  const Json::Value goals = row["under_quota"];
  row.removeMember("under_quota");
  const std::string at = JsonPointer(pointer, "under_quota");
  if (!goals.isObject()) return Invalid("{}: must be an object, not {}", at, JsonExcerpt(goals));
  for (const std::string& name : goals.getMemberNames()) {
    if (name != "must" && name != "aim") return Invalid("{}: is not known here", JsonPointer(at, name));
    if (under_quota) row[name] = goals[name];
  }
  return {};
}

// One row as it is written, as the plain rows that it stands for.
Status AddRows(const Json::Value& written, const Json::Value& measurement, const std::string& pointer,
               Json::Value& plain) {
  if (!written.isObject()) {
    plain.append(written);
    return {};
  }
  Json::Value row = written;
  if (written["quota_only"].isBool()) {
    if (written["quota_only"].asBool() && QuotaOf(measurement) <= 0) return {};
    row.removeMember("quota_only");
  }
  if (row.isMember("under_quota")) TANDEM_TRY(SetGoals(row, QuotaOf(measurement) > 0, pointer));
  if (measurement["cell"].isString()) {
    std::string cell = measurement["cell"].asString();
    if (const double quota = QuotaOf(measurement); quota > 0) {
      cell += Format(", quota of {} core{}", quota, quota == 1 ? "" : "s");
    }
    row["cell"] = row["cell"].isString() ? Format("{}, {}", cell, row["cell"].asString()) : cell;
  }
  if (!row.isMember("for")) {
    plain.append(row);
    return {};
  }
  TANDEM_ASSIGN(const std::vector<std::string> items, ItemsOf(row, measurement, pointer));
  row.removeMember("for");
  row.removeMember("except");
  for (const std::string& item : items) {
    Json::Value one = row;
    FillEach(one, item);
    plain.append(one);
  }
  return {};
}

Status ExpandMeasurement(Json::Value& measurement, const Json::Value& sets, const std::string& pointer) {
  const std::string at = JsonPointer(pointer, "rows");
  Json::Value plain(Json::arrayValue);
  const Json::Value& rows = measurement["rows"];
  for (Json::ArrayIndex i = 0; i < rows.size(); ++i) {
    if (!rows[i].isString()) {
      TANDEM_TRY(AddRows(rows[i], measurement, Format("{}/{}", at, i), plain));
      continue;
    }
    const std::string name = rows[i].asString();
    if (!sets.isMember(name)) return Invalid("{}/{}: there is no set of rows '{}'", at, i, Excerpt(name));
    const std::string place = JsonPointer("/row_sets", name);
    if (!sets[name].isArray()) return Invalid("{}: must be a list of rows, not {}", place, JsonExcerpt(sets[name]));
    for (Json::ArrayIndex k = 0; k < sets[name].size(); ++k) {
      TANDEM_TRY(AddRows(sets[name][k], measurement, Format("{}/{}", place, k), plain));
    }
  }
  measurement["rows"] = std::move(plain);
  if (std::as_const(measurement)["cell"].isString()) measurement.removeMember("cell");
  return {};
}

bool HasList(const Json::Value& object, const char* name) {
  return object.isObject() && object[name].isArray();
}

}  // namespace

Status ExpandRows(Json::Value& scenario) {
  if (!HasList(scenario, "measurements")) return {};
  const Json::Value sets = scenario["row_sets"];
  if (!sets.isNull() && !sets.isObject()) return Invalid("/row_sets: must be an object, not {}", JsonExcerpt(sets));
  scenario.removeMember("row_sets");
  Json::Value& measurements = scenario["measurements"];
  for (Json::ArrayIndex i = 0; i < measurements.size(); ++i) {
    if (!HasList(measurements[i], "rows")) continue;
    TANDEM_TRY(ExpandMeasurement(measurements[i], sets, Format("/measurements/{}", i)));
  }
  return {};
}

bool SetQuota(Json::Value& scenario, double cores) {
  bool found = false;
  if (!HasList(scenario, "measurements")) return found;
  for (Json::Value& measurement : scenario["measurements"]) {
    if (!measurement.isObject() || !measurement.isMember("quota")) continue;
    measurement["quota"] = cores;
    found = true;
  }
  return found;
}

void DropRepeatedRows(Json::Value& scenario) {
  if (!HasList(scenario, "measurements")) return;
  std::set<std::pair<std::string, std::string>> titles;
  Json::Value kept(Json::arrayValue);
  for (Json::Value measurement : scenario["measurements"]) {
    if (HasList(measurement, "rows")) {
      Json::Value rows(Json::arrayValue);
      for (const Json::Value& row : measurement["rows"]) {
        const bool titled = row.isObject() && row["metric"].isString() && row["cell"].isString();
        if (!titled || titles.emplace(row["metric"].asString(), row["cell"].asString()).second) rows.append(row);
      }
      if (rows.empty() && !measurement["rows"].empty()) continue;
      measurement["rows"] = rows;
    }
    kept.append(measurement);
  }
  scenario["measurements"] = kept;
}

}  // namespace tandem::bench
