#include "api/wire/json_document.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <exception>
#include <fstream>
#include <memory>
#include <utility>

#include <json/reader.h>

#include "api/wire/json_text.h"

namespace tandem {
namespace {

constexpr int kMaxDepth = 32;

template <typename Number>
void AppendNumber(Number number, std::string& out) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  out.append(text.data(), end);
}

void AppendReal(double number, std::string& out) {
  if (std::isfinite(number)) {
    AppendNumber(number, out);
  } else {
    out += "null";
  }
}

void Append(const Json::Value& value, std::string& out);

void AppendMembers(const Json::Value& object, std::string& out) {
  out += '{';
  bool first = true;
  for (const std::string& name : object.getMemberNames()) {
    if (!std::exchange(first, false)) out += ',';
    AppendJsonString(name, out);
    out += ':';
    Append(object[name], out);
  }
  out += '}';
}

void AppendItems(const Json::Value& list, std::string& out) {
  out += '[';
  for (Json::ArrayIndex i = 0; i < list.size(); ++i) {
    if (i > 0) out += ',';
    Append(list[i], out);
  }
  out += ']';
}

void Append(const Json::Value& value, std::string& out) {
  switch (value.type()) {
    case Json::nullValue: out += "null"; break;
    case Json::intValue: AppendNumber(value.asInt64(), out); break;
    case Json::uintValue: AppendNumber(value.asUInt64(), out); break;
    case Json::realValue: AppendReal(value.asDouble(), out); break;
    case Json::stringValue: AppendJsonString(value.asString(), out); break;
    case Json::booleanValue: out += value.asBool() ? "true" : "false"; break;
    case Json::arrayValue: AppendItems(value, out); break;
    case Json::objectValue: AppendMembers(value, out); break;
  }
}

}  // namespace

Result<Json::Value> ParseStrictJson(std::string_view text) {
  // jsoncpp lets some things pass that are no JSON.
  if (const Status strict = CheckJson(text); !strict) return Invalid("not JSON: {}", strict.error().message);
  Json::CharReaderBuilder builder;
  Json::CharReaderBuilder::strictMode(&builder.settings_);
  builder.settings_["stackLimit"] = kMaxDepth;
  Json::Value value;
  std::string problem;
  try {
    const std::unique_ptr<Json::CharReader> reader(builder.newCharReader());
    if (reader->parse(text.data(), text.data() + text.size(), &value, &problem)) return value;
  } catch (const std::exception& e) {
    problem = e.what();
  }
  std::ranges::replace(problem, '\n', ' ');
  return Invalid("not JSON: {}", Excerpt(problem));
}

Result<Json::Value> ReadJsonFile(const std::string& file, std::size_t most_bytes) {
  std::ifstream stream(file, std::ios::binary);
  std::string text(most_bytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(stream.gcount(), 0)));
  if (!stream.eof()) return Invalid("'{}' cannot be read, or has more than {} bytes", file, most_bytes);
  Result<Json::Value> value = ParseStrictJson(text);
  if (!value) return Invalid("'{}' is {}", file, value.error().message);
  if (!value->isObject()) return Invalid("'{}' is no JSON object, but {}", file, JsonExcerpt(*value));
  return value;
}

std::string JsonLine(const Json::Value& value) {
  std::string out;
  Append(value, out);
  return out;
}

std::string JsonExcerpt(const Json::Value& value) {
  return Excerpt(JsonLine(value));
}

std::string JsonPointer(std::string_view parent, std::string_view name) {
  std::string pointer = std::string(parent) + "/";
  for (const char c : Excerpt(name)) {
    if (c == '~') {
      pointer += "~0";
    } else if (c == '/') {
      pointer += "~1";
    } else {
      pointer += c;
    }
  }
  return pointer;
}

}  // namespace tandem
