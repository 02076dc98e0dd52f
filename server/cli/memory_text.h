#pragma once

#include <string>

#include <json/value.h>

#include "api/base/result.h"

namespace tandem::cli {

// What GET /v2/memory answers, for people: a bar of `columns` characters with the parts of the budget, who has how
// much, and who waits for what. kInternal: it is not such an answer.
[[nodiscard]] Result<std::string> MemoryText(const Json::Value& answer, int columns);

}  // namespace tandem::cli
