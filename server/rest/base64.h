#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tandem::rest {

// Strict RFC 4648 with padding: nothing around it and nothing in between. nullopt for any other text.
[[nodiscard]] std::optional<std::string> DecodeBase64(std::string_view text);

}  // namespace tandem::rest
