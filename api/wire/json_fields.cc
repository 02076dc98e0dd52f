#include "api/wire/json_fields.h"

#include <algorithm>

#include "api/base/format.h"
#include "api/wire/json_document.h"

namespace tandem {

bool NumberBounds::Hold(double number) const {
  return (above ? number > least : number >= least) && (below ? number < most : number <= most);
}

std::string NumberBounds::Words() const {
  if (!above && !below) return Format("a number from {} to {}", least, most);
  return Format("a number {} {} and {} {}", above ? "above" : "of at least", least, below ? "below" : "at most", most);
}

std::string OneOf(std::span<const std::string_view> texts) {
  std::string words = "one of";
  for (const std::string_view text : texts) words += Format("{} \"{}\"", words == "one of" ? "" : ",", text);
  return words;
}

JsonFields::JsonFields(const Json::Value& object, std::string pointer, std::vector<JsonMistake>& mistakes)
    : object_(object), pointer_(std::move(pointer)), mistakes_(mistakes) {}

std::string JsonFields::PointerTo(std::string_view name) const {
  return JsonPointer(pointer_, name);
}

void JsonFields::Mistake(std::string_view pointer, const Json::Value& value, std::string_view must) {
  mistakes_.push_back({std::string(pointer), Format("{} is {}; it must be {}", pointer, JsonExcerpt(value), must)});
}

void JsonFields::Contradiction(const char* name, std::string_view but) {
  std::string pointer = PointerTo(name);
  std::string message = Format("{} is {}, but {}", pointer, JsonExcerpt(object_[name]), but);
  mistakes_.push_back({std::move(pointer), std::move(message)});
}

void JsonFields::Missing(std::string_view name, std::string_view why) {
  std::string pointer = PointerTo(name);
  std::string message = Format("{} is missing: {}", pointer, why);
  mistakes_.push_back({std::move(pointer), std::move(message)});
}

const Json::Value* JsonFields::Find(const char* name) {
  known_.insert(name);
  return object_.isMember(name) ? &object_[name] : nullptr;
}

const Json::Value* JsonFields::Object(const char* name) {
  const Json::Value* const value = Find(name);
  if (value == nullptr || value->isObject()) return value;
  Mistake(PointerTo(name), *value, "an object");
  return nullptr;
}

std::optional<double> JsonFields::NumberOf(const char* name, NumberBounds bounds) {
  const Json::Value* const value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (value->isNumeric() && bounds.Hold(value->asDouble())) return value->asDouble();
  Mistake(PointerTo(name), *value, bounds.Words());
  return std::nullopt;
}

std::optional<std::int64_t> JsonFields::WholeOf(const char* name, std::int64_t least, std::int64_t most) {
  const Json::Value* const value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (value->isInt64() && value->asInt64() >= least && value->asInt64() <= most) return value->asInt64();
  Mistake(PointerTo(name), *value, Format("a whole number from {} to {}", least, most));
  return std::nullopt;
}

std::optional<std::size_t> JsonFields::ChoiceOf(const char* name, std::span<const std::string_view> texts) {
  const Json::Value* const value = Find(name);
  if (value == nullptr) return texts.size();
  if (value->isString()) {
    const auto found = std::ranges::find(texts, value->asString());
    if (found != texts.end()) return static_cast<std::size_t>(found - texts.begin());
  }
  Mistake(PointerTo(name), *value, OneOf(texts));
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
  std::string known;
  for (const std::string& field : known_) known += (known.empty() ? "" : ", ") + field;
  for (const std::string& name : object_.getMemberNames()) {
    if (known_.contains(name)) continue;
    std::string pointer = PointerTo(name);
    std::string message =
        Format("{} is not known: its value is {}; there are {}", pointer, JsonExcerpt(object_[name]), known);
    mistakes_.push_back({std::move(pointer), std::move(message)});
  }
}

}  // namespace tandem
