#include "server/rest/repository_calls.h"

#include <memory>
#include <string>
#include <utility>

#include "api/wire/json_text.h"
#include "api/wire/repository_call.h"
#include "server/http/body_buffer.h"
#include "server/rest/aside.h"
#include "server/rest/base64.h"
#include "server/rest/reply.h"

namespace tandem::rest {
namespace {

using http::Method;

constexpr std::string_view kFilePrefix = "file:";
// More than this takes too long for a thread that serves connections.
constexpr std::size_t kLargeLoad = 64 * 1024;

Result<Json::Value> Parameters(const Call& call) {
  TANDEM_ASSIGN(Json::Value body, ParseObject(call.exchange->request().body));
  Json::Value parameters = body["parameters"];
  if (parameters.isNull()) return Json::Value(Json::objectValue);
  if (!parameters.isObject()) return Invalid("'parameters' must be an object, not {}", Describe(parameters));
  return parameters;
}

// What the files need counts in `share`.
Result<repository::LoadOptions> ReadLoadOptions(const Bytes& body, BudgetShare& share) {
  repository::LoadOptions options;
  TANDEM_TRY(
      ReadRepositoryCall(body, http::kBodySlack, [&](std::string_view key, const ParameterValue& value) -> Status {
        if (key != "config" && !key.starts_with(kFilePrefix)) {
          return Invalid("unknown parameter '{}'; known: config, file:<version>/<file>", Excerpt(key));
        }
        const auto* text = std::get_if<std::string_view>(&value);
        if (text == nullptr)
          return Invalid("parameter '{}' must be a string, not {}", Excerpt(key), ParameterText(value));
        if (!share.Take(text->size())) return NoRoomInBudget();
        if (key == "config") {
          options.config_json = *text;
          return {};
        }
        auto bytes = DecodeBase64(*text);
        if (!bytes) return Invalid("parameter '{}' is {}, which is not base64", Excerpt(key), ParameterText(value));
        options.files.emplace(key.substr(kFilePrefix.size()), *std::move(bytes));
        return {};
      }));
  return options;
}

Result<Json::Value> Index(const ServerCore& core, const Call& call) {
  TANDEM_ASSIGN(const Json::Value body, ParseObject(call.exchange->request().body));
  TANDEM_ASSIGN(const bool ready_only, BoolMember(body, "ready", false));
  Json::Value list(Json::arrayValue);
  for (const repository::IndexEntry& entry : core.repository.Index(ready_only)) {
    Json::Value item(Json::objectValue);
    item["name"] = entry.name;
    if (!entry.version.empty()) item["version"] = entry.version;
    item["state"] = std::string(ModelStateName(entry.state));
    item["reason"] = entry.reason;
    for (const auto& [key, value] : entry.origin) item["parameters"][key] = value;
    list.append(std::move(item));
  }
  return list;
}

// Answers when the repository's worker is done; the exchange keeps the connection's place.
std::function<void(Status)> AnswerLater(std::shared_ptr<http::Exchange> exchange) {
  return [exchange = std::move(exchange)](const Status& done) {
    exchange->Respond(done ? http::JsonResponse(200, "{}") : http::ErrorResponse(done.error()));
  };
}

void StartLoad(ServerCore& core, const Call& call) {
  // Shared because Done is copied; the files live until it is called.
  auto share = std::make_shared<BudgetShare>(call.exchange->request().budget);
  auto options = ReadLoadOptions(call.exchange->TakeBody(), *share);
  if (!options) return call.exchange->Respond(http::ErrorResponse(options.error()));
  core.repository.LoadAsync(call.variables[0], *std::move(options),
                            [share, answer = AnswerLater(call.exchange)](const Status& done) { answer(done); });
}

void Load(ServerCore& core, const Call& call) {
  if (const Status allowed = core.repository.CheckExplicit(); !allowed) {
    return call.exchange->Respond(http::ErrorResponse(allowed.error()));
  }
  if (call.exchange->request().body.size() <= kLargeLoad) return StartLoad(core, call);
  RunAside(core.bulk, call.exchange, [c = &core, call] { StartLoad(*c, call); });
}

void Unload(ServerCore& core, const Call& call) {
  const auto check = [&]() -> Status {
    TANDEM_ASSIGN(const Json::Value parameters, Parameters(call));
    TANDEM_TRY(BoolMember(parameters, "unload_dependents", false));
    return {};
  };
  if (const Status valid = check(); !valid) return call.exchange->Respond(http::ErrorResponse(valid.error()));
  core.repository.UnloadAsync(call.variables[0], AnswerLater(call.exchange));
}

}  // namespace

void AddRepositoryRoutes(ServerCore& core, std::size_t max_body, std::vector<Route>& routes) {
  ServerCore* c = &core;
  routes.insert(
      routes.end(),
      {
          {Method::kPost, "/v2/repository/index", Immediate([c](const Call& call) { return Index(*c, call); })},
          {Method::kPost, "/v2/repository/models/{model}/load", [c](const Call& call) { Load(*c, call); }, max_body},
          {Method::kPost, "/v2/repository/models/{model}/unload", [c](const Call& call) { Unload(*c, call); }},
      });
}

}  // namespace tandem::rest
