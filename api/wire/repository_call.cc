#include "api/wire/repository_call.h"

#include <cstring>

#include "api/wire/json_value.h"

namespace tandem {
namespace {

namespace ondemand = simdjson::ondemand;

Status ReadParameters(ondemand::value value, const JsonPath& path, const VisitParameter& visit) {
  if (JsonToken(value) == "null") return SkipJson(value, path, 1);
  TANDEM_ASSIGN(ondemand::object object, ReadJsonObject(value, path));
  return ForEachMember(object, path, [&](std::string_view key, ondemand::value member) -> Status {
    const JsonPath at = path.Member(key);
    if (JsonToken(member) == "null") return SkipJson(member, at, 2);
    TANDEM_ASSIGN(const ParameterValue parameter, ReadJsonParameter(member, at));
    return visit(key, parameter);
  });
}

Status ReadPadded(std::string_view json, const VisitParameter& visit) {
  const JsonPath top;
  if (json.starts_with(kByteOrderMark)) return Invalid("malformed JSON: the body begins with a byte-order mark");
  const std::size_t begin = json.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || json[begin] != '{') return Invalid("the body must be a JSON object");
  ondemand::parser parser;
  ondemand::document document;
  const simdjson::padded_string_view padded(json.data(), json.size(), json.size() + simdjson::SIMDJSON_PADDING);
  if (const auto error = parser.iterate(padded).get(document)) return MalformedJson(error, top);
  ondemand::object object;
  if (const auto error = document.get_object().get(object)) return MalformedJson(error, top);
  TANDEM_TRY(ForEachMember(object, top, [&](std::string_view key, ondemand::value value) {
    const JsonPath at = top.Member(key);
    return key == "parameters" ? ReadParameters(value, at, visit) : SkipJson(value, at, 1);
  }));
  if (!document.at_end()) return MalformedJson(simdjson::TRAILING_CONTENT, top);
  return {};
}

}  // namespace

Status ReadRepositoryCall(const Bytes& body, std::size_t slack, const VisitParameter& visit) {
  if (body.size() == 0) return {};
  const std::string_view json(reinterpret_cast<const char*>(body.view.data()), body.size());
  if (slack >= simdjson::SIMDJSON_PADDING) return ReadPadded(json, visit);
  const simdjson::padded_string copy(json);
  return ReadPadded(copy, visit);
}

}  // namespace tandem
