#include "server/cli/train_text.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "api/base/byte_text.h"
#include "api/base/format.h"
#include "api/wire/json_document.h"
#include "api/wire/json_text.h"
#include "server/cli/plain_table.h"
#include "server/cli/pretty_json.h"

namespace tandem::cli {
namespace {

std::unexpected<Error> NotUnderstood(const char* what) {
  return Fail(ErrorCode::kInternal, "the server's answer is not {}; is --url right?", what);
}

std::string NumberText(const std::optional<double>& number) {
  return number ? Format("{:.4g}", *number) : "-";
}

std::string OrDash(std::string text) {
  return text.empty() ? "-" : std::move(text);
}

std::string StepCell(const JobView& job) {
  if (job.total_steps <= 0) return std::to_string(job.step);
  return Format("{}/{}", job.step, job.total_steps);
}

std::string MetricCell(const JobView& job) {
  if (job.metric_name.empty()) return "-";
  return Format("{} {}", job.metric_name, NumberText(job.metric));
}

// Of an object's member, if it is a number of bytes.
std::string BytesIn(const Json::Value& object, const char* name) {
  const Json::Value& bytes = object[name];
  return bytes.isNumeric() ? ByteText(static_cast<std::uint64_t>(std::clamp(bytes.asDouble(), 0.0, 1e18))) : "-";
}

// What a trainer takes, as it measured that, or as it is expected to.
std::string MemoryText(const Json::Value& memory) {
  if (!memory.isObject()) return "";
  if (const Json::Value& measured = memory["measured"]; measured.isObject()) {
    return Format("{}, and {} more in a step", BytesIn(measured, "persistent"), BytesIn(measured, "ephemeral"));
  }
  const Json::Value& estimate = memory["estimate"];
  if (!estimate.isObject() || !estimate["persistent"].isObject()) return "";
  return Format("{}, and {} more in a step, as estimated", BytesIn(estimate["persistent"], "total"),
                BytesIn(estimate, "ephemeral"));
}

struct Point {
  double step = 0;
  double value = 0;
};

// Those that are numbers: a loss that is none is null.
Result<std::vector<Point>> PointsOf(const Json::Value& series) {
  if (!series.isObject()) return NotUnderstood("a series");
  const Json::Value& steps = series["steps"];
  const Json::Value& values = series["values"];
  if (!steps.isArray() || !values.isArray() || steps.size() != values.size()) return NotUnderstood("a series");
  std::vector<Point> points;
  for (Json::ArrayIndex i = 0; i < steps.size(); ++i) {
    if (!steps[i].isNumeric() || !values[i].isNumeric()) continue;
    points.push_back({.step = steps[i].asDouble(), .value = values[i].asDouble()});
  }
  return points;
}

// The words of an event of our own, else its body.
std::string BodyText(const std::string& kind, const Json::Value& body) {
  if (kind == "state" && body.isObject() && body["to"].isString()) {
    std::string text = body["to"].asString();
    if (body["from"].isString()) text = body["from"].asString() + " → " + text;
    if (body["reason"].isString()) text += ": " + PrintableLines(body["reason"].asString());
    return text;
  }
  return JsonLine(body);
}

}  // namespace

std::string ProblemLines(const std::vector<JsonMistake>& problems) {
  std::string lines;
  for (const JsonMistake& problem : problems) {
    const std::string message = PrintableLines(problem.message);
    // Most messages begin with the place.
    const bool names_place = problem.pointer.empty() || message.starts_with(problem.pointer);
    lines += names_place ? Format("  {}\n", message) : Format("  {}: {}\n", problem.pointer, message);
  }
  return lines;
}

Result<std::string> JobTable(const Json::Value& page) {
  if (!page.isObject() || !page["jobs"].isArray()) return NotUnderstood("a list of training jobs");
  TableRows rows = {{"JOB", "NAME", "OWNER", "STATE", "MODEL", "STEP", "LOSS", "METRIC", "PUBLISHED", "CREATED"}};
  for (const Json::Value& json : page["jobs"]) {
    TANDEM_ASSIGN(const JobView job, ReadJobView(json));
    const std::string model = job.model_version.empty() ? job.model : job.model + ":" + job.model_version;
    rows.push_back({std::to_string(job.id), job.name, OrDash(job.owner), job.state, model, StepCell(job),
                    NumberText(job.loss), MetricCell(job), OrDash(job.published_version),
                    job.created_at.substr(0, 19)});
  }
  return PlainTable(rows);
}

Result<std::string> JobText(const Json::Value& json) {
  TANDEM_ASSIGN(const JobView job, ReadJobView(json));
  std::string text = Format("job {} ({}): {}\n", job.id, job.name, job.state);
  const auto fact = [&text](const char* name, const std::string& value) {
    if (!value.empty()) text += Format("  {:<12} {}\n", name, value);
  };
  fact("reason", PrintableLines(job.reason));
  fact("owner", job.owner);
  fact("model", job.model_version.empty() ? job.model : Format("{} version {}", job.model, job.model_version));
  fact("step", StepCell(job) + (job.epoch > 0 ? Format(" (epoch {})", job.epoch) : ""));
  if (job.loss) fact("loss", NumberText(job.loss));
  if (job.metric) {
    fact(job.metric_name.c_str(),
         NumberText(job.metric) + (job.best ? Format(" (best {})", NumberText(job.best)) : ""));
  }
  fact("published", job.published_version.empty() ? "" : "as version " + job.published_version);
  fact("memory", MemoryText(json["memory"]));
  fact("attempts", std::to_string(job.attempts));
  fact("next attempt", job.next_attempt_at);
  fact("created", job.created_at);
  fact("started", job.started_at);
  fact("ended", job.ended_at);
  return text + PrettyJson(json["job"]) + "\n";
}

Result<std::string> EstimateText(const Json::Value& answer) {
  if (!answer.isObject() || !answer["persistent"].isObject() || !answer["ephemeral"].isNumeric() ||
      !answer["peak"].isString() || !answer["batch"].isInt64()) {
    return NotUnderstood("an estimate");
  }
  const Json::Value& parts = answer["persistent"];
  TableRows rows = {{"MEMORY", "BYTES", ""}};
  rows.push_back({"persistent", BytesIn(parts, "total"), "as long as it runs"});
  for (const char* part : {"weights", "optimizer", "data", "framework"}) {
    rows.push_back({Format("  {}", part), BytesIn(parts, part), ""});
  }
  const std::string peak = Excerpt(answer["peak"].asString());
  rows.push_back(
      {"ephemeral", BytesIn(answer, "ephemeral"),
       Format("in a step of {} examples{}", answer["batch"].asInt64(), peak.empty() ? "" : ", the most at " + peak)});
  if (const Json::Value& fit = answer["fit"]; fit.isObject() && fit["slowdown"].isNumeric()) {
    rows.push_back({"  all held", BytesIn(fit, "kept"), "if nothing was computed again"});
    rows.push_back({"  at least", BytesIn(fit, "least"), "if as little is held as can be"});
    const std::string slowdown = Format("{:.1f} %", 100 * fit["slowdown"].asDouble());
    rows.push_back({"slowdown", slowdown, "of a step, by what is computed again"});
  }
  return PlainTable(rows);
}

Result<std::string> CheckpointTable(const Json::Value& answer) {
  if (!answer.isObject() || !answer["checkpoints"].isArray()) return NotUnderstood("a list of checkpoints");
  TableRows rows = {{"STEP", "FILE", "SIZE", "CHECKSUM", "TIME", "GOOD"}};
  for (const Json::Value& one : answer["checkpoints"]) {
    if (!one.isObject() || !one["step"].isInt64() || !one["bytes"].isNumeric()) {
      return NotUnderstood("a list of checkpoints");
    }
    rows.push_back({one["step"].asString(), one["file"].asString(),
                    ByteText(static_cast<std::uint64_t>(std::clamp(one["bytes"].asDouble(), 0.0, 1e18))),
                    one["checksum"].asString(), one["time"].asString(), one["good"].asBool() ? "yes" : "no"});
  }
  return PlainTable(rows);
}

Result<std::string> SeriesTable(const Json::Value& answer) {
  if (!answer.isObject()) return NotUnderstood("the series of a job");
  TableRows rows = {{"SERIES", "POINTS", "LAST STEP", "FIRST", "LAST", "LEAST", "MOST"}};
  for (const std::string& name : answer.getMemberNames()) {
    TANDEM_ASSIGN(const std::vector<Point> points, PointsOf(answer[name]));
    if (points.empty()) continue;
    const auto [least, most] = std::ranges::minmax(points, {}, &Point::value);
    rows.push_back({name, std::to_string(points.size()), Format("{:.0f}", points.back().step),
                    NumberText(points.front().value), NumberText(points.back().value), NumberText(least.value),
                    NumberText(most.value)});
  }
  return PlainTable(rows);
}

Result<std::string> SeriesPlot(const Json::Value& answer, const std::string& name, int rows, int columns) {
  if (!answer.isObject()) return NotUnderstood("the series of a job");
  if (!answer.isMember(name)) return Fail(ErrorCode::kNotFound, "the job has no series '{}'", Excerpt(name));
  TANDEM_ASSIGN(const std::vector<Point> points, PointsOf(answer[name]));
  if (points.empty()) return Fail(ErrorCode::kNotFound, "the series '{}' has no values", Excerpt(name));
  const auto [least, most] = std::ranges::minmax(points, {}, &Point::value);
  const auto [first, last] = std::ranges::minmax(points, {}, &Point::step);
  // One cell where all are alike.
  const auto cell = [](double value, double from, double to, int cells) {
    return to > from ? static_cast<int>(std::lround((value - from) / (to - from) * (cells - 1))) : 0;
  };
  std::vector<std::string> lines(static_cast<std::size_t>(rows), std::string(static_cast<std::size_t>(columns), ' '));
  for (const Point& point : points) {
    const int row = rows - 1 - cell(point.value, least.value, most.value, rows);
    const int column = cell(point.step, first.step, last.step, columns);
    lines[static_cast<std::size_t>(row)][static_cast<std::size_t>(column)] = '*';
  }
  std::string text = name + "\n";
  for (int row = 0; row < rows; ++row) {
    const std::string label = row == 0 ? NumberText(most.value) : row == rows - 1 ? NumberText(least.value) : "";
    text += Format("{:>10} |{}\n", label, lines[static_cast<std::size_t>(row)]);
  }
  const std::string from = Format("{:.0f}", first.step);
  text += Format("{:>10} +{}\n", "", std::string(static_cast<std::size_t>(columns), '-'));
  text += Format("{:>10}  {}{:>{}}\n", "step", from, Format("{:.0f}", last.step),
                 std::max(1, columns - static_cast<int>(from.size())));
  return text;
}

Result<Json::Value> EventJson(const ServerSentEvent& event) {
  auto json = ParseStrictJson(event.data);
  if (!json || !json->isObject() || !(*json)["time"].isString()) return NotUnderstood("events of training jobs");
  (*json)["id"] = event.id;
  (*json)["event"] = event.kind;
  return json;
}

Result<std::string> EventLine(const ServerSentEvent& event) {
  TANDEM_ASSIGN(const Json::Value json, EventJson(event));
  return Format("{}  job {}  {}  {}", json["time"].asString(), JsonLine(json["job"]), event.kind,
                BodyText(event.kind, json["body"]));
}

}  // namespace tandem::cli
