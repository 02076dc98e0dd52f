#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <json/value.h>

#include "api/base/buffer.h"
#include "api/base/result.h"

namespace tandem::rest {

// The JSON object of a control call; an empty body is an empty object. Strict: no comments, no duplicate keys, nothing
// after the object, bounded depth and number of values. Tensors and files never come this way.
[[nodiscard]] Result<Json::Value> ParseObject(const Bytes& body);

// Members by name and type; absent is nullopt or the default, another type an error that names the member.
[[nodiscard]] Result<std::optional<std::string>> StringMember(const Json::Value& object, const std::string& name);
[[nodiscard]] Result<std::optional<std::uint64_t>> UnsignedMember(const Json::Value& object, const char* name);
[[nodiscard]] Result<bool> BoolMember(const Json::Value& object, const char* name, bool absent);

// For messages: the text of a number, string or boolean, cut short; else the kind of value.
[[nodiscard]] std::string Describe(const Json::Value& value);

// One line, no spaces.
[[nodiscard]] std::string ToText(const Json::Value& value);

}  // namespace tandem::rest
