#include "bench/json_fields.h"

#include <cmath>
#include <utility>

#include "api/base/format.h"
#include "api/wire/json_document.h"
#include "api/wire/json_text.h"

namespace tandem::bench {
namespace {

Result<std::string> TextOf(const Json::Value& value, const std::string& pointer) {
  if (!value.isString()) return Invalid("{}: must be a text, not {}", pointer, JsonExcerpt(value));
  std::string text = value.asString();
  if (text.empty()) return Invalid("{}: must not be empty", pointer);
  if (text.size() > JsonFields::kMaxText) return Invalid("{}: has more than {} bytes", pointer, JsonFields::kMaxText);
  if (!IsPrintableUtf8(text)) {
    return Invalid("{}: must be UTF-8 without control characters, not {}", pointer, JsonExcerpt(value));
  }
  return text;
}

}  // namespace

Result<JsonFields> JsonFields::Of(const Json::Value& value, std::string pointer) {
  if (!value.isObject()) {
    return Invalid("{}: must be an object, not {}", pointer.empty() ? "/" : pointer, JsonExcerpt(value));
  }
  return JsonFields(value, std::move(pointer));
}

std::string JsonFields::At(const std::string& name) const {
  return JsonPointer(pointer_, name);
}

const Json::Value* JsonFields::Take(const std::string& name) {
  asked_.insert(name);
  return value_->isMember(name) ? &(*value_)[name] : nullptr;
}

Result<const Json::Value*> JsonFields::Require(const std::string& name) {
  const Json::Value* const value = Take(name);
  if (value == nullptr) return Invalid("{}: is missing", At(name));
  return value;
}

Result<std::string> JsonFields::Text(const std::string& name) {
  TANDEM_ASSIGN(const Json::Value* value, Require(name));
  return TextOf(*value, At(name));
}

Result<std::string> JsonFields::TextOr(const std::string& name, std::string fallback) {
  const Json::Value* const value = Take(name);
  if (value == nullptr) return fallback;
  return TextOf(*value, At(name));
}

Result<double> JsonFields::Number(const std::string& name, double low, double high) {
  TANDEM_ASSIGN(const Json::Value* value, Require(name));
  if (!value->isNumeric()) return Invalid("{}: must be a number, not {}", At(name), JsonExcerpt(*value));
  const double number = value->asDouble();
  if (!std::isfinite(number) || number < low || number > high) {
    return Invalid("{}: must be from {} to {}, not {}", At(name), low, high, JsonExcerpt(*value));
  }
  return number;
}

Result<std::optional<double>> JsonFields::OptionalNumber(const std::string& name, double low, double high) {
  if (Take(name) == nullptr) return std::nullopt;
  TANDEM_ASSIGN(const double number, Number(name, low, high));
  return number;
}

Result<int> JsonFields::Whole(const std::string& name, int low, int high) {
  TANDEM_ASSIGN(const double number, Number(name, low, high));
  if (number != std::floor(number)) return Invalid("{}: must be a whole number, not {}", At(name), number);
  return static_cast<int>(number);
}

Result<int> JsonFields::WholeOr(const std::string& name, int low, int high, int fallback) {
  if (Take(name) == nullptr) return fallback;
  return Whole(name, low, high);
}

Result<bool> JsonFields::FlagOr(const std::string& name, bool fallback) {
  const Json::Value* const value = Take(name);
  if (value == nullptr) return fallback;
  if (!value->isBool()) return Invalid("{}: must be true or false, not {}", At(name), JsonExcerpt(*value));
  return value->asBool();
}

Result<std::vector<std::string>> JsonFields::Texts(const std::string& name) {
  std::vector<std::string> texts;
  const Json::Value* const value = Take(name);
  if (value == nullptr) return texts;
  if (value->isString()) {
    TANDEM_ASSIGN(texts.emplace_back(), TextOf(*value, At(name)));
    return texts;
  }
  if (!value->isArray() || value->size() > kMaxItems) {
    return Invalid("{}: must be a text or a list of at most {} texts, not {}", At(name), kMaxItems,
                   JsonExcerpt(*value));
  }
  for (Json::ArrayIndex i = 0; i < value->size(); ++i) {
    TANDEM_ASSIGN(texts.emplace_back(), TextOf((*value)[i], Format("{}/{}", At(name), i)));
  }
  return texts;
}

Result<std::vector<JsonFields>> JsonFields::Objects(const std::string& name) {
  std::vector<JsonFields> objects;
  const Json::Value* const value = Take(name);
  if (value == nullptr) return objects;
  if (!value->isArray() || value->size() > kMaxItems) {
    return Invalid("{}: must be a list of at most {} objects, not {}", At(name), kMaxItems, JsonExcerpt(*value));
  }
  for (Json::ArrayIndex i = 0; i < value->size(); ++i) {
    TANDEM_ASSIGN(JsonFields fields, Of((*value)[i], Format("{}/{}", At(name), i)));
    objects.push_back(std::move(fields));
  }
  return objects;
}

Result<JsonFields> JsonFields::Object(const std::string& name) {
  TANDEM_ASSIGN(const Json::Value* value, Require(name));
  return Of(*value, At(name));
}

Result<std::vector<std::pair<std::string, std::string>>> JsonFields::TextMembers(const std::string& name) {
  std::vector<std::pair<std::string, std::string>> members;
  if (Take(name) == nullptr) return members;
  TANDEM_ASSIGN(JsonFields fields, Object(name));
  for (const std::string& member : fields.value_->getMemberNames()) {
    TANDEM_ASSIGN(std::string text, fields.Text(member));
    members.emplace_back(member, std::move(text));
  }
  return members;
}

Status JsonFields::Finish() const {
  for (const std::string& name : value_->getMemberNames()) {
    if (!asked_.contains(name)) return Invalid("{}: is not known here", At(name));
  }
  return {};
}

}  // namespace tandem::bench
