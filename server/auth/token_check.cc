#include "server/auth/token_check.h"

#include <algorithm>
#include <fstream>
#include <utility>

#include <openssl/crypto.h>
#include <openssl/sha.h>

namespace tandem {
namespace {

constexpr std::size_t kMaxTokenLength = 4096;
constexpr std::size_t kMaxTokens = 1000;
constexpr std::size_t kMaxNameLength = 64;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool EqualsIgnoringCase(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return (x | 0x20) == (y | 0x20); });
}

bool IsName(std::string_view text) {
  const auto allowed = [](char c) {
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '.' || c == '_' || c == '-';
  };
  return !text.empty() && text.size() <= kMaxNameLength && std::ranges::all_of(text, allowed);
}

}  // namespace

TokenCheck::Digest TokenCheck::Hash(std::string_view token) {
  Digest digest;
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), digest.data());
  return digest;
}

Result<TokenCheck> TokenCheck::Load(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) return Invalid("--token-file '{}' cannot be read", file.string());
  TokenCheck check;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    // What some editors put before the first line.
    if (number == 1 && line.starts_with(kByteOrderMark)) line.erase(0, kByteOrderMark.size());
    const auto last = line.find_last_not_of(" \t\r");
    line.erase(last == std::string::npos ? 0 : last + 1);
    if (line.empty() || line.starts_with('#')) continue;
    std::string name = kNobody;
    if (const auto blank = line.find(' '); blank != std::string::npos) {
      name = line.substr(0, blank);
      line.erase(0, blank + 1);
      if (!IsName(name)) {
        return Invalid(
            "--token-file '{}' line {}: before a token stands its name, of at most {} letters, digits and ._-",
            file.string(), number, kMaxNameLength);
      }
    }
    // A remark behind a token would make a name of the token, and a token of the remark.
    if (line.size() > kMaxTokenLength || line.find_first_of(" \t") != std::string::npos || line.starts_with('#')) {
      return Invalid(
          "--token-file '{}' line {}: a token has no spaces, no tabs, no # in front and at most {} characters",
          file.string(), number, kMaxTokenLength);
    }
    if (check.tokens_.size() == kMaxTokens) {
      return Invalid("--token-file '{}' has more than {} tokens", file.string(), kMaxTokens);
    }
    check.tokens_.push_back({Hash(line), std::move(name)});
  }
  if (check.tokens_.empty()) return Invalid("--token-file '{}' holds no token", file.string());
  return check;
}

std::optional<std::string> TokenCheck::NameOf(std::string_view authorization) const {
  if (!required()) return kNobody;
  constexpr std::string_view kScheme = "bearer ";
  if (authorization.size() <= kScheme.size() || !EqualsIgnoringCase(authorization.substr(0, kScheme.size()), kScheme)) {
    return std::nullopt;
  }
  const Digest digest = Hash(authorization.substr(kScheme.size()));
  const Token* found = nullptr;
  for (const Token& known : tokens_) {
    if (CRYPTO_memcmp(digest.data(), known.digest.data(), digest.size()) == 0) found = &known;
  }
  if (found == nullptr) return std::nullopt;
  return found->name;
}

}  // namespace tandem
