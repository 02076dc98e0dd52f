#include "server/rest/train_json.h"

#include <chrono>
#include <filesystem>
#include <optional>

#include "api/base/format.h"
#include "api/wire/json_document.h"
#include "api/wire/json_text.h"

namespace tandem::rest {
namespace {

// As RFC 3339 has it, in UTC.
std::string TimeText(std::int64_t ms) {
  const std::chrono::sys_time<std::chrono::milliseconds> time{std::chrono::milliseconds(ms)};
  return Format("{:%FT%TZ}", time);
}

void PutTime(Json::Value& object, const char* name, const std::optional<std::int64_t>& ms) {
  object[name] = ms ? Json::Value(TimeText(*ms)) : Json::Value();
}

void PutNumber(Json::Value& object, const char* name, const std::optional<double>& number) {
  object[name] = number ? Json::Value(*number) : Json::Value();
}

Json::Value ProgressToJson(const jobs::JobProgress& progress) {
  Json::Value json;
  json["step"] = Json::Int64(progress.step);
  json["total_steps"] = Json::Int64(progress.total_steps);
  json["epoch"] = Json::Int64(progress.epoch);
  PutNumber(json, "loss", progress.loss);
  if (!progress.metric_name.empty()) {
    json["metric"] = progress.metric_name;
    PutNumber(json, "value", progress.metric);
    PutNumber(json, "best", progress.best_metric);
  }
  return json;
}

}  // namespace

Json::Value JobToJson(const jobs::JobRecord& job) {
  Json::Value json;
  json["id"] = Json::Int64(job.id);
  json["name"] = job.name;
  json["owner"] = job.owner;
  json["state"] = std::string(JobStateName(job.state));
  json["reason"] = job.reason;
  json["model"] = job.model;
  json["model_version"] = job.model_version;
  json["published_version"] = job.published_version;
  json["priority"] = job.priority;
  json["progress"] = ProgressToJson(job.progress);
  json["attempts"] = Json::Int64(job.attempts);
  PutTime(json, "created_at", job.created_at);
  PutTime(json, "started_at", job.started_at);
  PutTime(json, "ended_at", job.ended_at);
  if (job.next_attempt_at) PutTime(json, "next_attempt_at", job.next_attempt_at);
  auto memory = ParseStrictJson(job.memory);
  json["memory"] = memory ? *std::move(memory) : Json::Value();
  // It was ours when it was written; a spec that cannot be read is shown as it stands.
  auto spec = ParseStrictJson(job.spec);
  json["job"] = spec ? *std::move(spec) : Json::Value(job.spec);
  return json;
}

Json::Value PageToJson(const jobs::JobPage& page) {
  Json::Value json;
  json["jobs"] = Json::Value(Json::arrayValue);
  for (const jobs::JobRecord& job : page.jobs) json["jobs"].append(JobToJson(job));
  json["next"] = page.next == 0 ? Json::Value() : Json::Value(std::to_string(page.next));
  return json;
}

Json::Value CheckpointsToJson(const std::vector<jobs::CheckpointRecord>& checkpoints) {
  Json::Value json;
  json["checkpoints"] = Json::Value(Json::arrayValue);
  for (const jobs::CheckpointRecord& checkpoint : checkpoints) {
    Json::Value item;
    item["step"] = Json::Int64(checkpoint.step);
    item["file"] = std::filesystem::path(checkpoint.path).filename().string();
    item["bytes"] = Json::Int64(checkpoint.bytes);
    item["checksum"] = checkpoint.checksum;
    item["time"] = TimeText(checkpoint.time);
    item["good"] = checkpoint.good;
    json["checkpoints"].append(std::move(item));
  }
  return json;
}

Json::Value SeriesToJson(const std::map<std::string, std::vector<jobs::SeriesPoint>>& series) {
  Json::Value json(Json::objectValue);
  for (const auto& [name, points] : series) {
    Json::Value& one = json[name];
    one["steps"] = Json::Value(Json::arrayValue);
    one["values"] = Json::Value(Json::arrayValue);
    for (const jobs::SeriesPoint& point : points) {
      one["steps"].append(Json::Int64(point.step));
      one["values"].append(point.value);
    }
  }
  return json;
}

std::string EventToSse(const jobs::JobEvent& event) {
  // Bodies are JSON on one line; what is kept as text has no line ends that would begin another field.
  return Format("id: {}\nevent: {}\ndata: {{\"job\":{},\"time\":{},\"body\":{}}}\n\n", event.sequence, event.kind,
                event.job, JsonString(TimeText(event.time)), event.body);
}

}  // namespace tandem::rest
