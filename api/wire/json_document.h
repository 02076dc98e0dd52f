#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <json/value.h>

#include "api/base/result.h"

// Small JSON documents as jsoncpp holds them: files that people write, bodies of control calls, stored records.

namespace tandem {

// Strict JSON: one value, UTF-8, no comments, no member twice, nested at most 32 levels deep. The message begins with
// "not JSON: ".
[[nodiscard]] Result<Json::Value> ParseStrictJson(std::string_view text);

// The object in a file of at most so many bytes, as strict.
inline constexpr std::size_t kMostJsonFileBytes = 1 << 20;
[[nodiscard]] Result<Json::Value> ReadJsonFile(const std::string& file, std::size_t most_bytes = kMostJsonFileBytes);

// One line: members in the order of their names, every number the shortest text that reads back as the same; what is
// not finite is null. Equal values give equal text.
[[nodiscard]] std::string JsonLine(const Json::Value& value);

// The same, cut where it is long; for messages.
[[nodiscard]] std::string JsonExcerpt(const Json::Value& value);

// The JSON pointer (RFC 6901) to a member of the object or list at `parent`; a long name is cut.
[[nodiscard]] std::string JsonPointer(std::string_view parent, std::string_view name);

}  // namespace tandem
