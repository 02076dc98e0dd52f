#include "server/rest/repository_calls.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include <openssl/evp.h>

#include "api/wire/json_text.h"
#include "server/rest/reply.h"

namespace tandem::rest {
namespace {

using http::Method;

constexpr std::string_view kFilePrefix = "file:";
constexpr std::string_view kBase64Letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

Result<std::string> DecodeBase64(std::string_view key, const std::string& text) {
  std::string bytes(text.size() / 4 * 3 + 3, '\0');
  // EVP_DecodeBlock takes '=' anywhere, and blanks around the text.
  const std::size_t plain = std::min(text.find_first_not_of(kBase64Letters), text.size());
  const bool padded = text.size() - plain <= 2 && text.find_first_not_of('=', plain) == std::string::npos;
  const bool sized = padded && text.size() % 4 == 0 && text.size() < std::numeric_limits<int>::max();
  const int written =
      sized ? EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                              reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()))
            : -1;
  if (written < 0) return Invalid("parameter '{}' is not base64", Excerpt(key));
  std::size_t size = static_cast<std::size_t>(written);
  // EVP_DecodeBlock counts the padding as zero bytes.
  if (text.ends_with("==")) {
    size -= 2;
  } else if (text.ends_with('=')) {
    size -= 1;
  }
  bytes.resize(size);
  return bytes;
}

Result<Json::Value> Parameters(const Call& call) {
  TANDEM_ASSIGN(Json::Value body, ParseObject(call.exchange->request().body));
  Json::Value parameters = body["parameters"];
  if (parameters.isNull()) return Json::Value(Json::objectValue);
  if (!parameters.isObject()) return Invalid("'parameters' must be an object");
  return parameters;
}

Result<repository::LoadOptions> ReadLoadOptions(const Call& call) {
  TANDEM_ASSIGN(const Json::Value parameters, Parameters(call));
  repository::LoadOptions options;
  for (const std::string& key : parameters.getMemberNames()) {
    TANDEM_ASSIGN(std::optional<std::string> value, StringMember(parameters, key));
    if (!value) continue;
    if (key == "config") {
      options.config_json = std::move(*value);
    } else if (key.starts_with(kFilePrefix)) {
      TANDEM_ASSIGN(std::string bytes, DecodeBase64(key, *value));
      options.files.emplace(key.substr(kFilePrefix.size()), std::move(bytes));
    } else {
      return Invalid("unknown parameter '{}'; known: config, file:<version>/<file>", Excerpt(key));
    }
  }
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
    list.append(std::move(item));
  }
  return list;
}

// Answers when the repository's worker is done; the exchange keeps the connection's place.
std::function<void(tandem::Status)> AnswerLater(std::shared_ptr<http::Exchange> exchange) {
  return [exchange = std::move(exchange)](const tandem::Status& done) {
    exchange->Respond(done ? http::JsonResponse(200, "{}") : http::ErrorResponse(done.error()));
  };
}

}  // namespace

void AddRepositoryRoutes(ServerCore& core, std::vector<Route>& routes) {
  ServerCore* c = &core;
  const auto load = [c](Call call) {
    auto options = ReadLoadOptions(call);
    if (!options) return call.exchange->Respond(http::ErrorResponse(options.error()));
    c->repository.LoadAsync(call.variables[0], *std::move(options), AnswerLater(call.exchange));
  };
  const auto unload = [c](Call call) {
    if (const auto parameters = Parameters(call); !parameters) {
      return call.exchange->Respond(http::ErrorResponse(parameters.error()));
    } else if (const auto flag = BoolMember(*parameters, "unload_dependents", false); !flag) {
      return call.exchange->Respond(http::ErrorResponse(flag.error()));
    }
    c->repository.UnloadAsync(call.variables[0], AnswerLater(call.exchange));
  };
  routes.insert(routes.end(), {
                                  {Method::kPost, "/v2/repository/index",
                                   Immediate([c](const Call& call) { return Index(*c, call); })},
                                  {Method::kPost, "/v2/repository/models/{model}/load", load},
                                  {Method::kPost, "/v2/repository/models/{model}/unload", unload},
                              });
}

}  // namespace tandem::rest
