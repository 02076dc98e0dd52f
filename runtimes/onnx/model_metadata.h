#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "api/base/result.h"

namespace tandem {

// What a model's file says of itself (metadata_props), by key. Entries that are longer than a person would read, or
// hold control characters, are passed over, and so are those beyond the first hundred. Errors name the file.
[[nodiscard]] Result<std::map<std::string, std::string>> ReadOnnxMetadata(const std::filesystem::path& model);

}  // namespace tandem
