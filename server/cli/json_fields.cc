#include "server/cli/json_fields.h"

#include <algorithm>
#include <format>
#include <fstream>
#include <memory>
#include <utility>

#include <json/reader.h>
#include <json/writer.h>

#include "api/wire/json_text.h"

namespace tandem::cli {
namespace {

constexpr std::size_t kMaxFileBytes = 1 << 20;
constexpr int kMaxDepth = 32;

}  // namespace

Result<Json::Value> ReadJsonObject(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string text(kMaxFileBytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(stream.gcount(), 0)));
  if (!stream.eof()) return Invalid("'{}' cannot be read, or has more than {} bytes", file, kMaxFileBytes);
  Json::CharReaderBuilder builder;
  Json::CharReaderBuilder::strictMode(&builder.settings_);
  builder.settings_["stackLimit"] = kMaxDepth;
  Json::Value value;
  std::string errors;
  try {
    const std::unique_ptr<Json::CharReader> reader(builder.newCharReader());
    if (reader->parse(text.data(), text.data() + text.size(), &value, &errors) && value.isObject()) return value;
  } catch (const std::exception&) {
    errors = "nested too deeply";
  }
  std::ranges::replace(errors, '\n', ' ');
  return Invalid("'{}' is no JSON object: {}", file, Excerpt(errors));
}

std::string JsonExcerpt(const Json::Value& value) {
  Json::StreamWriterBuilder builder;
  builder["indentation"] = "";
  builder["emitUTF8"] = true;
  return Excerpt(Json::writeString(builder, value));
}

JsonFields::JsonFields(const Json::Value& object, std::string pointer, std::vector<std::string>& mistakes)
    : object_(object), pointer_(std::move(pointer)), mistakes_(mistakes) {}

std::string JsonFields::PointerTo(std::string_view name) const {
  std::string pointer = pointer_ + "/";
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

void JsonFields::Mistake(std::string_view pointer, const Json::Value& value, std::string_view must) {
  mistakes_.push_back(std::format("{} is {}; it must be {}", pointer, JsonExcerpt(value), must));
}

void JsonFields::Missing(std::string_view name, std::string_view why) {
  mistakes_.push_back(std::format("{} is missing: {}", PointerTo(name), why));
}

const Json::Value* JsonFields::Find(const char* name) {
  known_.insert(name);
  return object_.isMember(name) ? &object_[name] : nullptr;
}

std::optional<double> JsonFields::NumberOf(const char* name, double least, double most) {
  const Json::Value* const value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (value->isNumeric() && value->asDouble() >= least && value->asDouble() <= most) return value->asDouble();
  Mistake(PointerTo(name), *value, std::format("a number from {} to {}", least, most));
  return std::nullopt;
}

std::optional<std::int64_t> JsonFields::WholeOf(const char* name, std::int64_t least, std::int64_t most) {
  const Json::Value* const value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (value->isInt64() && value->asInt64() >= least && value->asInt64() <= most) return value->asInt64();
  Mistake(PointerTo(name), *value, std::format("a whole number from {} to {}", least, most));
  return std::nullopt;
}

void JsonFields::Text(const char* name, std::string& target) {
  const Json::Value* const value = Find(name);
  if (value == nullptr) return;
  if (value->isString() && !value->asString().empty()) {
    target = value->asString();
  } else {
    Mistake(PointerTo(name), *value, "a text that is not empty");
  }
}

void JsonFields::Flag(const char* name, bool& target) {
  const Json::Value* const value = Find(name);
  if (value == nullptr) return;
  if (value->isBool()) {
    target = value->asBool();
  } else {
    Mistake(PointerTo(name), *value, "true or false");
  }
}

void JsonFields::Finish() {
  for (const std::string& name : object_.getMemberNames()) {
    if (known_.contains(name)) continue;
    std::string known;
    for (const std::string& field : known_) known += (known.empty() ? "" : ", ") + field;
    mistakes_.push_back(std::format("{} is not known: its value is {}; there are {}", PointerTo(name),
                                    JsonExcerpt(object_[name]), known));
  }
}

}  // namespace tandem::cli
