#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "api/base/result.h"

namespace tandem {

// Appends `text` as a JSON string, quotes included. Bytes that are not UTF-8 become U+FFFD, so the result is always
// valid JSON.
void AppendJsonString(std::string_view text, std::string& out);

[[nodiscard]] std::string JsonString(std::string_view text);

// Whether the text is exactly one JSON value: UTF-8, strict numbers, nested at most 64 levels deep. kInvalidArgument
// says what is wrong. For readers that are laxer than the standard.
[[nodiscard]] Status CheckJson(std::string_view text);

[[nodiscard]] bool IsValidUtf8(std::string_view text);

// Valid UTF-8 without control characters and line separators: fit for a name that people and logs see.
[[nodiscard]] bool IsPrintableUtf8(std::string_view text);

inline constexpr std::size_t kExcerptBytes = 100;

// Text from a client, fit for a message or a log line: at most kExcerptBytes, cut with "…", valid UTF-8, and with
// control characters and invalid bytes as U+FFFD.
[[nodiscard]] std::string Excerpt(std::string_view text);

}  // namespace tandem
