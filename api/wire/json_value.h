#pragma once

// Strict reads from simdjson On-Demand values. Inside api/wire only: simdjson.h is heavy. On-Demand checks only what is
// read, so everything must be either read or passed to SkipJson.

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <simdjson.h>

#include "api/base/result.h"
#include "api/wire/infer_parameters.h"
#include "api/wire/json_text.h"

namespace tandem {

// Nesting beyond this is refused wherever it occurs.
inline constexpr int kMaxJsonDepth = 64;
// Members that an object which is read may have. Each name is kept to tell duplicates.
inline constexpr std::size_t kMaxJsonMembers = 1024;

// Where a value stands ("inputs[0].shape[1]"); spelled out only for messages. Lives on the stack of the reader.
struct JsonPath {
  const JsonPath* parent = nullptr;
  std::string_view member;  // Used when index < 0.
  std::ptrdiff_t index = -1;

  [[nodiscard]] JsonPath Member(std::string_view name) const { return {this, name, -1}; }
  [[nodiscard]] JsonPath Element(std::size_t at) const { return {this, {}, static_cast<std::ptrdiff_t>(at)}; }
  [[nodiscard]] std::string Text() const;
};

// Tells names seen twice, in time that a hostile list cannot make quadratic. The text is borrowed.
class SeenNames {
 public:
  // False when the name was there already.
  [[nodiscard]] bool Insert(std::string_view name);

 private:
  std::vector<std::string_view> few_;
  std::set<std::string_view> many_;
};

[[nodiscard]] std::unexpected<Error> MalformedJson(simdjson::error_code error, const JsonPath& path);
[[nodiscard]] std::unexpected<Error> WrongJsonType(simdjson::ondemand::value value, const JsonPath& path,
                                                   std::string_view expected);

// The token at which the value starts, without space around it: a whole scalar, or '[' or '{'.
[[nodiscard]] std::string_view JsonToken(simdjson::ondemand::value& value);
// For messages: `"text"`, `12`, `an array`, …
[[nodiscard]] std::string DescribeJson(simdjson::ondemand::value& value);
// NaN, Inf, Infinity, with a minus or without: not JSON, but what Triton reads.
[[nodiscard]] bool IsNonFiniteToken(std::string_view token);

// The text is borrowed from the parser and holds until its next document.
[[nodiscard]] Result<std::string_view> ReadJsonString(simdjson::ondemand::value value, const JsonPath& path);
[[nodiscard]] Result<simdjson::ondemand::array> ReadJsonArray(simdjson::ondemand::value value, const JsonPath& path);
[[nodiscard]] Result<simdjson::ondemand::object> ReadJsonObject(simdjson::ondemand::value value, const JsonPath& path);
[[nodiscard]] Result<ParameterValue> ReadJsonParameter(simdjson::ondemand::value value, const JsonPath& path);

// Checks a value that nobody wants. `depth` is that of the value in the document.
[[nodiscard]] Status SkipJson(simdjson::ondemand::value value, const JsonPath& path, int depth);

// A mark that other readers pass over in silence; here the text must begin with the value.
inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// Calls visit(key, value) for each member; a key that occurs twice, or more than kMaxJsonMembers, is an error.
template <typename Visit>
[[nodiscard]] Status ForEachMember(simdjson::ondemand::object object, const JsonPath& path, Visit visit) {
  SeenNames seen;
  std::size_t count = 0;
  for (auto result : object) {
    if (++count > kMaxJsonMembers) return Invalid("{} has more than {} members", path.Text(), kMaxJsonMembers);
    simdjson::ondemand::field field;
    if (const auto error = std::move(result).get(field)) return MalformedJson(error, path);
    std::string_view key;
    if (const auto error = field.unescaped_key().get(key)) return MalformedJson(error, path);
    if (!seen.Insert(key)) return Invalid("duplicate key '{}' in {}", Excerpt(key), path.Text());
    TANDEM_TRY(visit(key, field.value()));
  }
  return {};
}

// Calls visit(index, value) for each element; more than `most` of them is an error.
template <typename Visit>
[[nodiscard]] Status ForEachElement(simdjson::ondemand::array array, const JsonPath& path, std::size_t most,
                                    Visit visit) {
  std::size_t index = 0;
  for (auto result : array) {
    simdjson::ondemand::value value;
    if (const auto error = std::move(result).get(value)) return MalformedJson(error, path);
    if (index == most) return Invalid("{} has more than {} elements", path.Text(), most);
    TANDEM_TRY(visit(index, value));
    ++index;
  }
  return {};
}

}  // namespace tandem
