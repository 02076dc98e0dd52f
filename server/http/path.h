#pragma once

#include <map>
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

// The parameters of a query, "a=1&b=x%20y", decoded. kInvalidArgument for a broken escape, a control character, what is
// not UTF-8, a name that is given twice, or more than 32 of them.
[[nodiscard]] Result<std::map<std::string, std::string>> ParseQuery(std::string_view query);

}  // namespace tandem::http
