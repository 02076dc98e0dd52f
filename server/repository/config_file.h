#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "api/base/result.h"
#include "api/wire/model_config_text.h"

namespace tandem::repository {

// Reads and parses a config.pbtxt or config.json, by its name.
[[nodiscard]] Result<ParsedModelConfig> ReadConfigFile(const std::filesystem::path& path);

// The whole of a small text file; more than `limit` bytes is kTooLarge.
[[nodiscard]] Result<std::string> ReadSmallFile(const std::filesystem::path& path, std::size_t limit);

}  // namespace tandem::repository
