#include "server/trainer/run_file.h"

#include <fstream>

#include <json/value.h>

#include "api/wire/json_document.h"
#include "api/wire/json_fields.h"
#include "api/wire/training_job_json.h"

namespace tandem {
namespace {

constexpr int kMostThreads = 4096;
constexpr std::int64_t kMostJobs = std::int64_t{1} << 53;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 53;

}  // namespace

Status WriteRunFile(const TrainerRun& run, const std::filesystem::path& file) {
  Json::Value json;
  json["job"] = TrainingJobToJson(run.job);
  json["model"] = run.model.string();
  json["folder"] = run.folder.string();
  if (!run.data_root.empty()) json["data_root"] = run.data_root.string();
  json["threads"] = run.threads;
  json["number"] = Json::Int64(run.number);
  if (run.limit) json["limit"] = Json::Int64(static_cast<std::int64_t>(*run.limit));
  json["measure_only"] = run.measure_only;
  json["estimate_only"] = run.estimate_only;
  std::ofstream out(file, std::ios::trunc);
  out << JsonLine(json) << "\n";
  out.close();
  if (!out) return Fail(ErrorCode::kInternal, "'{}' cannot be written", file.string());
  return {};
}

Result<TrainerRun> ReadRunFile(const std::filesystem::path& file) {
  TANDEM_ASSIGN(const Json::Value json, ReadJsonFile(file.string()));
  std::vector<JsonMistake> mistakes;
  JsonFields fields(json, "", mistakes);
  TrainerRun run;
  std::string model;
  std::string folder;
  std::string data_root;
  fields.Text("model", model);
  fields.Text("folder", folder);
  fields.Text("data_root", data_root);
  fields.Whole("threads", run.threads, 1, kMostThreads);
  fields.Whole("number", run.number, 0, kMostJobs);
  fields.Whole("limit", run.limit, 1, kMostBytes);
  fields.Flag("measure_only", run.measure_only);
  fields.Flag("estimate_only", run.estimate_only);
  const Json::Value* const job = fields.Object("job");
  fields.Finish();
  if (!mistakes.empty()) return Invalid("'{}': {}", file.string(), mistakes.front().message);
  if (job == nullptr) return Invalid("'{}' has no job", file.string());
  auto read = ReadTrainingJob(*job);
  if (!read) return Invalid("'{}': {}", file.string(), read.error().ToError().message);
  run.job = *std::move(read);
  run.model = model;
  run.folder = folder;
  run.data_root = data_root;
  return run;
}

}  // namespace tandem
