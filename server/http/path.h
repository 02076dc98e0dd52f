#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/base/result.h"

namespace tandem::http {

// Percent-decodes one segment of a path. kInvalidArgument for a broken escape, a control character, '/' or '\', "." or
// "..", and what is not UTF-8 after decoding.
[[nodiscard]] Result<std::string> DecodeSegment(std::string_view segment);

// "/v2/models/a%20b" → {"v2", "models", "a b"}; "/" → {}. Errors of DecodeSegment, and kNotFound for an empty segment
// ("/v2//x", "/v2/"), which names nothing.
[[nodiscard]] Result<std::vector<std::string>> SplitPath(std::string_view path);

}  // namespace tandem::http
