#include "api/wire/json_value.h"

#include <algorithm>

namespace tandem {
namespace {

namespace ondemand = simdjson::ondemand;

constexpr std::size_t kFewNames = 16;

bool IsSpace(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

Status SkipScalar(ondemand::value value, char first, const JsonPath& path) {
  simdjson::error_code error = simdjson::SUCCESS;
  if (first == '"') {
    error = value.get_string().error();
  } else if (first == 't' || first == 'f') {
    error = value.get_bool().error();
  } else if (first == 'n') {
    bool null = false;
    error = value.is_null().get(null);
    if (error == simdjson::SUCCESS && !null) error = simdjson::N_ATOM_ERROR;
  } else if (!IsNonFiniteToken(JsonToken(value))) {
    error = value.get_double().error();
  }
  if (error != simdjson::SUCCESS) return MalformedJson(error, path);
  return {};
}

}  // namespace

std::string JsonPath::Text() const {
  if (parent == nullptr) return member.empty() ? "the request" : std::string(member);
  const bool top = parent->parent == nullptr && parent->member.empty();
  std::string text = top ? "" : parent->Text();
  if (index >= 0) return text + '[' + std::to_string(index) + ']';
  if (!text.empty()) text += '.';
  return text + Excerpt(member);
}

bool SeenNames::Insert(std::string_view name) {
  if (!many_.empty()) return many_.insert(name).second;
  if (std::ranges::contains(few_, name)) return false;
  few_.push_back(name);
  if (few_.size() > kFewNames) many_.insert(few_.begin(), few_.end());
  return true;
}

std::unexpected<Error> MalformedJson(simdjson::error_code error, const JsonPath& path) {
  // The parser's only error that the text has no part in.
  if (error == simdjson::MEMALLOC) {
    return Fail(ErrorCode::kUnavailable, "there is not enough memory to read {} now", path.Text());
  }
  return Invalid("malformed JSON in {}: {}", path.Text(), simdjson::error_message(error));
}

std::string_view JsonToken(ondemand::value& value) {
  std::string_view token = value.raw_json_token();
  while (!token.empty() && IsSpace(token.back())) token.remove_suffix(1);
  return token;
}

std::string DescribeJson(ondemand::value& value) {
  const std::string_view token = JsonToken(value);
  if (token.starts_with('[')) return "an array";
  if (token.starts_with('{')) return "an object";
  return Excerpt(token);
}

std::unexpected<Error> WrongJsonType(ondemand::value value, const JsonPath& path, std::string_view expected) {
  return Invalid("{} is {} but must be {}", path.Text(), DescribeJson(value), expected);
}

bool IsNonFiniteToken(std::string_view token) {
  if (token.starts_with('-')) token.remove_prefix(1);
  return token == "NaN" || token == "Inf" || token == "Infinity";
}

Result<std::string_view> ReadJsonString(ondemand::value value, const JsonPath& path) {
  std::string_view text;
  const auto error = value.get_string().get(text);
  if (error == simdjson::INCORRECT_TYPE) return WrongJsonType(value, path, "a string");
  if (error != simdjson::SUCCESS) return MalformedJson(error, path);
  return text;
}

Result<ondemand::array> ReadJsonArray(ondemand::value value, const JsonPath& path) {
  ondemand::array array;
  const auto error = value.get_array().get(array);
  if (error == simdjson::INCORRECT_TYPE) return WrongJsonType(value, path, "an array");
  if (error != simdjson::SUCCESS) return MalformedJson(error, path);
  return array;
}

Result<ondemand::object> ReadJsonObject(ondemand::value value, const JsonPath& path) {
  ondemand::object object;
  const auto error = value.get_object().get(object);
  if (error == simdjson::INCORRECT_TYPE) return WrongJsonType(value, path, "an object");
  if (error != simdjson::SUCCESS) return MalformedJson(error, path);
  return object;
}

Result<ParameterValue> ReadJsonParameter(ondemand::value value, const JsonPath& path) {
  const std::string_view token = JsonToken(value);
  const char first = token.empty() ? '\0' : token.front();
  if (first == '"') return ReadJsonString(value, path);
  if (first == 't' || first == 'f') {
    bool flag = false;
    if (const auto error = value.get_bool().get(flag)) return MalformedJson(error, path);
    return flag;
  }
  if (first != '-' && (first < '0' || first > '9')) {
    return WrongJsonType(value, path, "a string, a number, true or false");
  }
  if (token.find_first_of(".eE") != std::string_view::npos) {
    double number = 0;
    if (value.get_double().get(number)) return WrongJsonType(value, path, "a number that fits 64 bits");
    return number;
  }
  std::int64_t integer = 0;
  if (value.get_int64().get(integer) == simdjson::SUCCESS) return integer;
  std::uint64_t large = 0;
  if (value.get_uint64().get(large) == simdjson::SUCCESS) return large;
  return WrongJsonType(value, path, "a number that fits 64 bits");
}

Status SkipJson(ondemand::value value, const JsonPath& path, int depth) {
  if (depth > kMaxJsonDepth) return Invalid("the JSON is nested more than {} levels deep", kMaxJsonDepth);
  const std::string_view token = JsonToken(value);
  const char first = token.empty() ? '\0' : token.front();
  if (first != '[' && first != '{') return SkipScalar(value, first, path);
  if (first == '[') {
    TANDEM_ASSIGN(ondemand::array array, ReadJsonArray(value, path));
    for (auto result : array) {
      ondemand::value element;
      if (const auto error = std::move(result).get(element)) return MalformedJson(error, path);
      TANDEM_TRY(SkipJson(element, path, depth + 1));
    }
    return {};
  }
  TANDEM_ASSIGN(ondemand::object object, ReadJsonObject(value, path));
  for (auto result : object) {
    ondemand::field field;
    if (const auto error = std::move(result).get(field)) return MalformedJson(error, path);
    if (const auto error = field.unescaped_key().error()) return MalformedJson(error, path);
    TANDEM_TRY(SkipJson(field.value(), path, depth + 1));
  }
  return {};
}

Status CheckJson(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) return Invalid("malformed JSON: the text begins with a byte-order mark");
  simdjson::dom::parser parser;
  if (const auto error = parser.allocate(text.size(), kMaxJsonDepth)) return MalformedJson(error, {});
  const simdjson::padded_string padded(text);
  if (const auto error = parser.parse(padded).error()) return MalformedJson(error, {});
  return {};
}

}  // namespace tandem
