#include "bench/scenario.h"

#include <algorithm>
#include <format>
#include <fstream>
#include <utility>

#include "api/wire/json_document.h"
#include "api/wire/json_text.h"
#include "bench/row_templates.h"

namespace tandem::bench {
namespace {

constexpr double kMostMinutes = 1440;
constexpr int kMostRounds = 1000;
constexpr double kLongestWindow = 600;
constexpr double kShortestWindow = 0.01;

std::chrono::nanoseconds Seconds(double seconds) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}

Result<Pace> ParseRounds(JsonFields& fields) {
  Pace pace;
  TANDEM_ASSIGN(pace.rounds, fields.Whole("rounds", 1, kMostRounds));
  TANDEM_ASSIGN(const double warmup, fields.Number("warmup_s", 0, kLongestWindow));
  pace.warmup = Seconds(warmup);
  TANDEM_ASSIGN(const double window, fields.Number("window_s", kShortestWindow, kLongestWindow));
  pace.window = Seconds(window);
  TANDEM_TRY(fields.Finish());
  return pace;
}

Result<Pace> ParsePace(Result<JsonFields> object) {
  TANDEM_ASSIGN(JsonFields fields, std::move(object));
  TANDEM_ASSIGN(const double minutes, fields.Number("minutes", 0, kMostMinutes));
  TANDEM_ASSIGN(Pace pace, ParseRounds(fields));
  pace.minutes = minutes;
  return pace;
}

// A measurement may have a pace of its own.
Result<std::optional<Pace>> ParseOwnPace(JsonFields& part, const std::string& name) {
  if (!part.Has(name)) return std::nullopt;
  TANDEM_ASSIGN(JsonFields fields, part.Object(name));
  TANDEM_ASSIGN(const Pace pace, ParseRounds(fields));
  return pace;
}

Result<ScenarioPart> ParsePart(JsonFields fields, const MeasurementKinds& kinds, const std::vector<PeerSpec>& peers) {
  ScenarioPart part;
  TANDEM_ASSIGN(const std::string kind, fields.Text("kind"));
  const auto known = kinds.find(kind);
  if (known == kinds.end()) {
    std::string names;
    for (const auto& [name, parser] : kinds) names += (names.empty() ? "" : ", ") + name;
    return Invalid("{}: there is no kind '{}'; there are {}", fields.At("kind"), Excerpt(kind), names);
  }
  TANDEM_ASSIGN(part.measurement, known->second(fields, peers));
  TANDEM_ASSIGN(part.full_only, fields.FlagOr("full_only", false));
  TANDEM_ASSIGN(part.full, ParseOwnPace(fields, "full"));
  TANDEM_ASSIGN(part.quick, ParseOwnPace(fields, "quick"));
  TANDEM_ASSIGN(const std::vector<JsonFields> rows, fields.Objects("rows"));
  TANDEM_TRY(fields.Finish());
  if (rows.empty()) return Invalid("{}: must list at least one row", fields.At("rows"));
  for (const JsonFields& row : rows) {
    TANDEM_ASSIGN(RowSpec spec, ParseRowSpec(row, part.measurement->series()));
    part.rows.push_back(std::move(spec));
  }
  return part;
}

// Two rows of one title could not be told apart in a report.
Status CheckTitles(const Scenario& scenario) {
  std::vector<std::string> titles;
  for (const ScenarioPart& part : scenario.parts) {
    for (const RowSpec& row : part.rows) titles.push_back(row.title());
  }
  std::ranges::sort(titles);
  const auto twice = std::ranges::adjacent_find(titles);
  if (twice != titles.end()) return Invalid("/measurements: two rows are called '{}'", Excerpt(*twice));
  return {};
}

}  // namespace

void KeepQuick(Scenario& scenario) {
  std::erase_if(scenario.parts, [](const ScenarioPart& part) { return part.full_only; });
}

Result<Scenario> ParseScenario(std::string_view text, const MeasurementKinds& kinds, std::optional<double> quota) {
  TANDEM_ASSIGN(Json::Value json, ParseStrictJson(text));
  if (quota && !SetQuota(json, *quota)) return Invalid("/measurements: none has a quota");
  TANDEM_TRY(ExpandRows(json));
  if (quota) DropRepeatedRows(json);
  TANDEM_ASSIGN(JsonFields fields, JsonFields::Of(json, ""));
  Scenario scenario;
  TANDEM_ASSIGN(scenario.name, fields.Text("name"));
  TANDEM_ASSIGN(scenario.what, fields.Text("what"));
  TANDEM_ASSIGN(scenario.full, ParsePace(fields.Object("full")));
  TANDEM_ASSIGN(scenario.quick, ParsePace(fields.Object("quick")));
  TANDEM_ASSIGN(const std::vector<JsonFields> peers, fields.Objects("peers"));
  for (const JsonFields& object : peers) {
    TANDEM_ASSIGN(PeerSpec peer, ParsePeer(object));
    if (std::ranges::contains(scenario.peers, peer.name, &PeerSpec::name)) {
      return Invalid("{}: there are two peers '{}'", object.At("name"), peer.name);
    }
    scenario.peers.push_back(std::move(peer));
  }
  TANDEM_ASSIGN(const std::vector<JsonFields> parts, fields.Objects("measurements"));
  TANDEM_TRY(fields.Finish());
  if (parts.empty()) return Invalid("/measurements: must list at least one measurement");
  for (const JsonFields& part : parts) {
    TANDEM_ASSIGN(ScenarioPart parsed, ParsePart(part, kinds, scenario.peers));
    scenario.parts.push_back(std::move(parsed));
  }
  TANDEM_TRY(CheckTitles(scenario));
  return scenario;
}

Result<Scenario> ReadScenario(const std::filesystem::path& file, const MeasurementKinds& kinds,
                              std::optional<double> quota) {
  std::ifstream stream(file, std::ios::binary);
  std::string text(kMaxScenarioBytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(stream.gcount(), 0)));
  if (!stream.eof()) {
    return Invalid("'{}' cannot be read, or has more than {} bytes", file.string(), kMaxScenarioBytes);
  }
  auto scenario = ParseScenario(text, kinds, quota);
  if (!scenario) return Fail(scenario.error().code, "'{}': {}", file.string(), scenario.error().message);
  return scenario;
}

std::vector<std::filesystem::path> ScenarioFiles(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace tandem::bench
