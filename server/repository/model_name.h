#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "api/base/result.h"

namespace tandem::repository {

inline constexpr std::size_t kMaxModelName = 255;

[[nodiscard]] bool IsUtf8(std::string_view text);

// Text from outside made fit for a message: valid UTF-8, no control characters, cut when longer than `limit` bytes.
[[nodiscard]] std::string Quotable(std::string_view text, std::size_t limit = 100);

// A path of this machine made fit for a message.
[[nodiscard]] std::string PathText(const std::filesystem::path& path);

// A model's name is one folder's name: 1 to 255 bytes of printable UTF-8, no '/' and no '\', no '.' in front.
[[nodiscard]] Status CheckModelName(std::string_view name);

// The name of a version folder: a positive integer without sign or leading zero that fits 63 bits. Else nothing.
[[nodiscard]] std::optional<std::int64_t> ParseVersionFolder(std::string_view name);

// The version in a request: `[0-9]+`, else kInvalidArgument. One that no folder can have is nullopt.
[[nodiscard]] Result<std::optional<std::int64_t>> ParseRequestedVersion(std::string_view text);

}  // namespace tandem::repository
