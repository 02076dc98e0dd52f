#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tandem {

// At most `limit` bytes of text from outside, fit for a message: valid UTF-8 without control characters; "…" marks a
// cut.
[[nodiscard]] std::string Readable(std::string_view text, std::size_t limit);

[[nodiscard]] bool IsUtf8(std::string_view text);

}  // namespace tandem
