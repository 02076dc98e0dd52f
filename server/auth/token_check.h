#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/result.h"

namespace tandem {

// The bearer tokens that the server accepts. Immutable after loading; thread-safe. Comparison takes the same time
// whatever is wrong with a token: both sides are hashed and every known token is compared.
class TokenCheck {
 public:
  // No tokens: everything is allowed.
  TokenCheck() = default;
  // One token a line, or a name, a blank and the token; '#' begins a comment line. Names (letters, digits, '.', '_',
  // '-') tell whose token it is; several may have one. A file without a token is an error.
  [[nodiscard]] static Result<TokenCheck> Load(const std::filesystem::path& file);

  [[nodiscard]] bool required() const { return !tokens_.empty(); }
  // `authorization` is the header's value: "Bearer TOKEN".
  [[nodiscard]] bool Allows(std::string_view authorization) const { return NameOf(authorization).has_value(); }
  // Whose token this is, kNobody for one without a name and where none is needed; nullopt when it is not allowed.
  [[nodiscard]] std::optional<std::string> NameOf(std::string_view authorization) const;
  static constexpr const char* kNobody = "default";

 private:
  using Digest = std::array<unsigned char, 32>;
  static Digest Hash(std::string_view token);

  struct Token {
    Digest digest;
    std::string name;
  };
  std::vector<Token> tokens_;
};

}  // namespace tandem
