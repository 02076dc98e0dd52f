#pragma once

#include <cstdint>
#include <filesystem>

#include "api/base/result.h"
#include "server/cli/api_client.h"

namespace tandem::cli {

// Writes the trained model of a job to `file` as it comes, and gives its size. A file that is there keeps what it holds
// until all of the new one has come; what is no regular file (/dev/stdout, a pipe) is written to as it is.
[[nodiscard]] Result<std::uint64_t> FetchModel(ApiClient& client, std::int64_t job, const std::filesystem::path& file);

}  // namespace tandem::cli
