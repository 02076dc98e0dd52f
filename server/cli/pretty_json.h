#pragma once

#include <string>

#include <json/value.h>

namespace tandem::cli {

// For people: indented, a list of numbers or texts on one line, every number the shortest text that reads back as the
// same. What is not finite is null. Without a line end at the end.
[[nodiscard]] std::string PrettyJson(const Json::Value& value);

}  // namespace tandem::cli
