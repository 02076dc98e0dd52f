#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "api/base/result.h"
#include "server/cli/api_client.h"

namespace tandem::cli {

// Writes what the server answers to GET `path` to `file` as it comes, and gives its size. A file that is there keeps
// what it holds until all of the new one has come; what is no regular file (/dev/stdout, a pipe) is written to as it
// is. `on_piece`, which may be empty, sees all of it, too.
[[nodiscard]] Result<std::uint64_t> FetchFile(ApiClient& client, const std::string& path,
                                              const std::filesystem::path& file,
                                              const std::function<void(std::string_view)>& on_piece = {});

}  // namespace tandem::cli
