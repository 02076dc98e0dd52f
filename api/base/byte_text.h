#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tandem {

// Numbers of bytes as people write and read them.

// "1.5GiB", "2 GB", "512B": a number and its unit, of thousands or of 1024. nullopt: it is not of that form. Of any
// size and sign; the caller knows what is too much.
[[nodiscard]] std::optional<double> ParseByteText(std::string_view text);

// "310.0 MiB", in units of 1024.
[[nodiscard]] std::string ByteText(std::uint64_t bytes);

}  // namespace tandem
