#include "server/rest/settings_calls.h"

#include <limits>
#include <string>
#include <utility>

#include "api/wire/json_text.h"
#include "server/rest/reply.h"

namespace tandem::rest {
namespace {

using http::Method;

Json::Value LogValue(const LogSettingValue& value) {
  return std::visit([](const auto& v) { return Json::Value(v); }, value);
}

Result<LogSettingValue> ReadLogValue(const std::string& key, const Json::Value& value) {
  if (value.isBool()) return value.asBool();
  if (value.isString()) return value.asString();
  if (value.isUInt() && value.type() != Json::realValue) return std::uint32_t{value.asUInt()};
  return Invalid("log setting '{}' must be a boolean, a string or an integer from 0 to 2^32-1, not {}", Excerpt(key),
                 Describe(value));
}

Json::Value LogAnswer(const LogSettings& settings) {
  Json::Value answer(Json::objectValue);
  for (const auto& [key, value] : settings.Get()) answer[key] = LogValue(value);
  return answer;
}

Result<Json::Value> UpdateLog(LogSettings& settings, const Call& call) {
  TANDEM_ASSIGN(const Json::Value body, ParseObject(call.exchange->request().body));
  LogSettings::Values changes;
  for (const std::string& key : body.getMemberNames()) {
    TANDEM_ASSIGN(LogSettingValue value, ReadLogValue(key, body[key]));
    changes.emplace(key, std::move(value));
  }
  TANDEM_TRY(settings.Update(changes));
  return LogAnswer(settings);
}

Result<std::string> TraceModel(const ServerCore& core, const Call& call) {
  if (call.variables.empty()) return std::string();
  TANDEM_TRY(core.repository.Find(call.variables[0], ""));
  return call.variables[0];
}

// The protocol gives trace_level as a list and the rest as strings.
Result<Json::Value> TraceAnswer(const ServerCore& core, const Call& call) {
  TANDEM_ASSIGN(const std::string model, TraceModel(core, call));
  Json::Value answer(Json::objectValue);
  for (const auto& [key, values] : core.trace_settings.Get(model)) {
    if (key == "trace_level") {
      answer[key] = Json::Value(Json::arrayValue);
      for (const std::string& value : values) answer[key].append(value);
    } else {
      answer[key] = values.front();
    }
  }
  return answer;
}

Result<std::optional<std::vector<std::string>>> ReadTraceValue(const std::string& key, const Json::Value& value) {
  if (value.isNull()) return std::nullopt;
  std::vector<std::string> values;
  const auto read = [&](const Json::Value& one) -> Status {
    if (one.isString()) {
      values.push_back(one.asString());
    } else if (one.isInt64() && one.type() != Json::realValue) {
      values.push_back(std::to_string(one.asInt64()));
    } else {
      return Invalid("trace setting '{}' must be a string, a list of strings, or null, not {}", Excerpt(key),
                     Describe(one));
    }
    return {};
  };
  if (!value.isArray()) {
    TANDEM_TRY(read(value));
  } else {
    for (const Json::Value& one : value) TANDEM_TRY(read(one));
  }
  return values;
}

Result<Json::Value> UpdateTrace(ServerCore& core, const Call& call) {
  TANDEM_ASSIGN(const std::string model, TraceModel(core, call));
  TANDEM_ASSIGN(const Json::Value body, ParseObject(call.exchange->request().body));
  TraceSettings::Changes changes;
  for (const std::string& key : body.getMemberNames()) {
    TANDEM_ASSIGN(auto value, ReadTraceValue(key, body[key]));
    changes.emplace(key, std::move(value));
  }
  TANDEM_TRY(core.trace_settings.Update(model, changes));
  return TraceAnswer(core, call);
}

}  // namespace

void AddSettingsRoutes(ServerCore& core, std::vector<Route>& routes) {
  ServerCore* c = &core;
  const Handler get_trace = Immediate([c](const Call& call) { return TraceAnswer(*c, call); });
  const Handler set_trace = Immediate([c](const Call& call) { return UpdateTrace(*c, call); });
  routes.insert(
      routes.end(),
      {
          {Method::kGet, "/v2/logging",
           Immediate([c](const Call&) -> Result<Json::Value> { return LogAnswer(c->log_settings); })},
          {Method::kPost, "/v2/logging", Immediate([c](const Call& call) { return UpdateLog(c->log_settings, call); })},
          {Method::kGet, "/v2/trace/setting", get_trace},
          {Method::kPost, "/v2/trace/setting", set_trace},
          {Method::kGet, "/v2/models/{model}/trace/setting", get_trace},
          {Method::kPost, "/v2/models/{model}/trace/setting", set_trace},
      });
}

}  // namespace tandem::rest
