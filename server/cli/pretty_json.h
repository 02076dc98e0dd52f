#pragma once

#include <string>

#include <json/value.h>

namespace tandem::cli {

// Indented, for people; without a line end at the end.
[[nodiscard]] std::string PrettyJson(const Json::Value& value);

}  // namespace tandem::cli
