#include "server/rest/json_body.h"

#include <algorithm>
#include <exception>
#include <memory>

#include <json/reader.h>
#include <json/writer.h>

#include "api/wire/json_text.h"

namespace tandem::rest {
namespace {

constexpr int kMaxDepth = 64;
constexpr std::ptrdiff_t kMaxValues = 10'000;

std::string_view TypeName(const Json::Value& value) {
  switch (value.type()) {
    case Json::nullValue: return "null";
    case Json::intValue:
    case Json::uintValue:
    case Json::realValue: return "a number";
    case Json::stringValue: return "a string";
    case Json::booleanValue: return "a boolean";
    case Json::arrayValue: return "an array";
    case Json::objectValue: return "an object";
  }
  return "unknown";
}

// jsoncpp spends some fifty bytes on each value, which a body of commas and brackets would turn into as many megabytes.
Status CheckSize(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin != std::string_view::npos && text[begin] == '[')
    return Invalid("the body must be a JSON object, not an array");
  const auto values = std::ranges::count_if(text, [](char c) { return c == ',' || c == '[' || c == '{'; });
  if (values > kMaxValues) return Invalid("the body has more than {} values", kMaxValues);
  return {};
}

}  // namespace

Result<Json::Value> ParseObject(const Bytes& body) {
  Json::Value value(Json::objectValue);
  if (body.size() == 0) return value;
  const std::string_view text(reinterpret_cast<const char*>(body.view.data()), body.size());
  TANDEM_TRY(CheckSize(text));
  // jsoncpp takes numbers such as 01 and bytes that are not UTF-8.
  TANDEM_TRY(CheckJson(text));
  Json::CharReaderBuilder builder;
  Json::CharReaderBuilder::strictMode(&builder.settings_);
  builder.settings_["stackLimit"] = kMaxDepth;
  builder.settings_["rejectDupKeys"] = true;
  std::string errors;
  try {
    const std::unique_ptr<Json::CharReader> reader(builder.newCharReader());
    if (!reader->parse(text.data(), text.data() + text.size(), &value, &errors)) {
      return Invalid("the body is not valid JSON: {}", errors.substr(0, 200));
    }
  } catch (const std::exception& e) {
    return Invalid("the body is not valid JSON: {}", e.what());
  }
  if (!value.isObject()) return Invalid("the body must be a JSON object, not {}", TypeName(value));
  return value;
}

Result<std::optional<std::string>> StringMember(const Json::Value& object, const std::string& name) {
  const Json::Value& value = object[name];
  if (value.isNull()) return std::nullopt;
  if (!value.isString()) return Invalid("'{}' must be a string, not {}", Excerpt(name), Describe(value));
  return value.asString();
}

Result<std::optional<std::uint64_t>> UnsignedMember(const Json::Value& object, const char* name) {
  const Json::Value& value = object[name];
  if (value.isNull()) return std::nullopt;
  if (!value.isUInt64() || value.type() == Json::realValue) {
    return Invalid("'{}' must be an integer from 0 to 2^64-1, not {}", name, Describe(value));
  }
  return value.asUInt64();
}

Result<bool> BoolMember(const Json::Value& object, const char* name, bool absent) {
  const Json::Value& value = object[name];
  if (value.isNull()) return absent;
  if (!value.isBool()) return Invalid("'{}' must be true or false, not {}", name, Describe(value));
  return value.asBool();
}

std::string Describe(const Json::Value& value) {
  if (value.isNull() || value.isArray() || value.isObject()) return std::string(TypeName(value));
  return Excerpt(ToText(value));
}

std::string ToText(const Json::Value& value) {
  Json::StreamWriterBuilder builder;
  builder["indentation"] = "";
  builder["emitUTF8"] = true;
  return Json::writeString(builder, value);
}

}  // namespace tandem::rest
