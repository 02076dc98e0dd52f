#pragma once

#include <array>
#include <filesystem>
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
  // One token a line; '#' begins a comment line. A file without a token is an error.
  [[nodiscard]] static Result<TokenCheck> Load(const std::filesystem::path& file);

  [[nodiscard]] bool required() const { return !digests_.empty(); }
  // `authorization` is the header's value: "Bearer TOKEN".
  [[nodiscard]] bool Allows(std::string_view authorization) const;

 private:
  using Digest = std::array<unsigned char, 32>;
  static Digest Hash(std::string_view token);

  std::vector<Digest> digests_;
};

}  // namespace tandem
