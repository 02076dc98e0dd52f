#pragma once

#include <filesystem>
#include <string_view>

#include "api/base/result.h"

namespace tandem::loadgen {

// Whether a report can be written there, asked before the run that makes it. Creates and changes nothing. The error
// names the file.
[[nodiscard]] Status CheckReportFile(const std::filesystem::path& file);

// Writes the report whole: a file that is there keeps what it holds until all of the new text is on the disk. Links are
// followed; what is no regular file (/dev/stdout, a pipe) is written to as it is.
[[nodiscard]] Status WriteReportFile(const std::filesystem::path& file, std::string_view text);

}  // namespace tandem::loadgen
