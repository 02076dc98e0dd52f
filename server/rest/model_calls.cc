#include "server/rest/model_calls.h"

#include <memory>
#include <string>

#include "api/wire/model_config_text.h"
#include "server/rest/reply.h"

namespace tandem::rest {
namespace {

using http::Method;

// The second variable of a path, when it has one.
std::string VersionOf(const Call& call) {
  return call.variables.size() > 1 ? call.variables[1] : std::string();
}

Json::Value TensorSpecs(const std::vector<TensorSpec>& specs) {
  Json::Value list(Json::arrayValue);
  for (const TensorSpec& spec : specs) {
    Json::Value item(Json::objectValue);
    item["name"] = spec.name;
    item["datatype"] = std::string(DataTypeName(spec.type));
    item["shape"] = Json::Value(Json::arrayValue);
    for (const std::int64_t dim : spec.shape) item["shape"].append(Json::Int64{dim});
    list.append(std::move(item));
  }
  return list;
}

Result<Json::Value> ServerMetadata(const ServerCore& core) {
  Json::Value answer(Json::objectValue);
  answer["name"] = core.info.name;
  answer["version"] = core.info.version;
  answer["extensions"] = Json::Value(Json::arrayValue);
  for (const std::string& extension : core.info.extensions) answer["extensions"].append(extension);
  return answer;
}

Result<Json::Value> ModelMetadata(const ServerCore& core, const Call& call) {
  TANDEM_ASSIGN(const auto servable, core.repository.Find(call.variables[0], VersionOf(call)));
  TANDEM_ASSIGN(const auto config, core.repository.Config(call.variables[0], VersionOf(call)));
  Json::Value answer(Json::objectValue);
  answer["name"] = servable->name();
  answer["versions"] = Json::Value(Json::arrayValue);
  if (VersionOf(call).empty()) {
    TANDEM_ASSIGN(const auto versions, core.repository.Versions(call.variables[0]));
    for (const std::string& version : versions) answer["versions"].append(version);
  } else {
    answer["versions"].append(servable->version_text());
  }
  answer["platform"] = config->platform();
  answer["inputs"] = TensorSpecs(servable->signature().inputs);
  answer["outputs"] = TensorSpecs(servable->signature().outputs);
  return answer;
}

Json::Value Duration(const DurationTotal& total) {
  Json::Value value(Json::objectValue);
  value["count"] = Json::UInt64{total.count};
  value["ns"] = Json::UInt64{total.ns};
  return value;
}

Json::Value Statistics(const Servable& servable) {
  const ModelTotals totals = servable.statistics().Totals();
  Json::Value item(Json::objectValue);
  item["name"] = servable.name();
  item["version"] = servable.version_text();
  item["last_inference"] = Json::UInt64{totals.last_inference_ms};
  item["inference_count"] = Json::UInt64{totals.inference_count};
  item["execution_count"] = Json::UInt64{totals.execution_count};
  Json::Value& stats = item["inference_stats"] = Json::Value(Json::objectValue);
  stats["success"] = Duration(totals.success);
  stats["fail"] = Duration(totals.fail);
  stats["queue"] = Duration(totals.queue);
  stats["compute_input"] = Duration(totals.compute_input);
  stats["compute_infer"] = Duration(totals.compute_infer);
  stats["compute_output"] = Duration(totals.compute_output);
  stats["cache_hit"] = Duration({});
  stats["cache_miss"] = Duration({});
  Json::Value& batches = item["batch_stats"] = Json::Value(Json::arrayValue);
  for (const auto& [size, batch] : totals.batches) {
    Json::Value entry(Json::objectValue);
    entry["batch_size"] = Json::UInt64{size};
    entry["compute_input"] = Duration(batch.compute_input);
    entry["compute_infer"] = Duration(batch.compute_infer);
    entry["compute_output"] = Duration(batch.compute_output);
    batches.append(std::move(entry));
  }
  item["memory_usage"] = Json::Value(Json::arrayValue);
  return item;
}

Result<Json::Value> ModelStatistics(const ServerCore& core, const Call& call) {
  const std::string name = call.variables.empty() ? std::string() : call.variables[0];
  std::shared_ptr<Servable> asked;  // Of a version that is named, in whatever spelling.
  if (!name.empty()) {
    TANDEM_ASSIGN(auto found, core.repository.Find(name, VersionOf(call)));
    if (!VersionOf(call).empty()) asked = std::move(found);
  }
  Json::Value answer(Json::objectValue);
  Json::Value& list = answer["model_stats"] = Json::Value(Json::arrayValue);
  for (const auto& servable : core.repository.Snapshot()) {
    if (!name.empty() && servable->name() != name) continue;
    if (asked != nullptr && servable->version_text() != asked->version_text()) continue;
    list.append(Statistics(*servable));
  }
  return answer;
}

http::Response ModelConfig(const ServerCore& core, const Call& call) {
  const auto config = core.repository.Config(call.variables[0], VersionOf(call));
  if (!config) return http::ErrorResponse(config.error());
  return http::JsonResponse(200, ModelConfigJson(**config));
}

// Answers with a status alone, or with the reason why not.
Handler Probe(std::function<Status(const Call&)> check) {
  return [check = std::move(check)](const Call& call) {
    const Status status = check(call);
    if (!status) return call.exchange->Respond(http::ErrorResponse(status.error()));
    http::Response response = http::JsonResponse(200, "");
    response.content_type.clear();
    call.exchange->Respond(std::move(response));
  };
}

Status ServerReady(const ServerCore& core) {
  if (!core.Ready()) return Fail(ErrorCode::kUnavailable, "the server is not ready");
  return {};
}

Status ModelReady(const ServerCore& core, const Call& call) {
  return core.repository.CheckReady(call.variables[0], VersionOf(call));
}

}  // namespace

void AddModelRoutes(ServerCore& core, std::vector<Route>& routes) {
  ServerCore* c = &core;
  const Handler metadata = Immediate([c](const Call& call) { return ModelMetadata(*c, call); });
  const Handler statistics = Immediate([c](const Call& call) { return ModelStatistics(*c, call); });
  const Handler config = [c](const Call& call) { call.exchange->Respond(ModelConfig(*c, call)); };
  const Handler ready = Probe([c](const Call& call) { return ModelReady(*c, call); });
  routes.insert(routes.end(),
                {
                    {Method::kGet, "/v2", Immediate([c](const Call&) { return ServerMetadata(*c); })},
                    {Method::kGet, "/v2/health/live", Probe([](const Call&) { return Status(); })},
                    {Method::kGet, "/v2/health/ready", Probe([c](const Call&) { return ServerReady(*c); })},
                    {Method::kGet, "/v2/models/stats", statistics},
                    {Method::kGet, "/v2/models/{model}", metadata},
                    {Method::kGet, "/v2/models/{model}/versions/{version}", metadata},
                    {Method::kGet, "/v2/models/{model}/ready", ready},
                    {Method::kGet, "/v2/models/{model}/versions/{version}/ready", ready},
                    {Method::kGet, "/v2/models/{model}/config", config},
                    {Method::kGet, "/v2/models/{model}/versions/{version}/config", config},
                    {Method::kGet, "/v2/models/{model}/stats", statistics},
                    {Method::kGet, "/v2/models/{model}/versions/{version}/stats", statistics},
                });
}

}  // namespace tandem::rest
