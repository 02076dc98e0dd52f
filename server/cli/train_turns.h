#pragma once

#include <string>

#include <json/value.h>

#include "api/base/result.h"

namespace tandem::cli {

// Whose iterations are next, and by which policy, as text. Pure. kInternal when the answer is none of a tandem server.
[[nodiscard]] Result<std::string> TurnsText(const Json::Value& answer);

}  // namespace tandem::cli
