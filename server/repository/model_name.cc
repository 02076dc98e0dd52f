#include "server/repository/model_name.h"

#include <algorithm>
#include <charconv>

namespace tandem::repository {
namespace {

constexpr std::size_t kMaxQuotedPath = 1000;

struct CodePoint {
  std::uint32_t value = 0;
  std::size_t length = 0;  // 0: not UTF-8.
};

// The code point at the front of `text`, which is not empty. Overlong forms, surrogates and values beyond 10FFFF are
// not UTF-8.
CodePoint Decode(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {lead, 1};
  std::size_t length = 0;
  std::uint32_t value = 0;
  std::uint32_t smallest = 0;
  if ((lead & 0xE0) == 0xC0) {
    length = 2, value = lead & 0x1Fu, smallest = 0x80;
  } else if ((lead & 0xF0) == 0xE0) {
    length = 3, value = lead & 0x0Fu, smallest = 0x800;
  } else if ((lead & 0xF8) == 0xF0) {
    length = 4, value = lead & 0x07u, smallest = 0x10000;
  } else {
    return {};
  }
  if (text.size() < length) return {};
  for (std::size_t i = 1; i < length; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0) != 0x80) return {};
    value = (value << 6) | (next & 0x3Fu);
  }
  if (value < smallest || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) return {};
  return {value, length};
}

// Control characters, and the line and paragraph separators that would break a log line.
bool IsPrintable(std::uint32_t c) {
  return c >= 0x20 && !(c >= 0x7F && c < 0xA0) && c != 0x2028 && c != 0x2029;
}

}  // namespace

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = Decode(text).length;
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string Quotable(std::string_view text, std::size_t limit) {
  std::string quoted;
  while (!text.empty()) {
    const CodePoint c = Decode(text);
    const std::size_t length = std::max<std::size_t>(c.length, 1);
    if (quoted.size() + length > limit) return quoted + "…";
    if (c.length > 0 && IsPrintable(c.value)) {
      quoted += text.substr(0, length);
    } else {
      quoted += '?';
    }
    text.remove_prefix(length);
  }
  return quoted;
}

std::string PathText(const std::filesystem::path& path) {
  return Quotable(std::string_view(path.native()), kMaxQuotedPath);
}

Status CheckModelName(std::string_view name) {
  if (name.empty()) return Invalid("the model name is empty");
  if (name.size() > kMaxModelName) {
    return Invalid("the model name '{}' has {} bytes; at most {} are allowed", Quotable(name), name.size(),
                   kMaxModelName);
  }
  // Such folders are what is being copied, or versions of other tools: no way to a model may lead through them.
  if (name.starts_with('.')) return Invalid("the model name '{}' begins with '.'", Quotable(name));
  for (std::string_view rest = name; !rest.empty();) {
    const CodePoint c = Decode(rest);
    if (c.length == 0) return Invalid("the model name '{}' is not valid UTF-8", Quotable(name));
    if (c.value == '/' || c.value == '\\') {
      return Invalid("the model name '{}' contains '{}'", Quotable(name), static_cast<char>(c.value));
    }
    if (!IsPrintable(c.value)) return Invalid("the model name '{}' contains a control character", Quotable(name));
    rest.remove_prefix(c.length);
  }
  return {};
}

std::optional<std::int64_t> ParseVersionFolder(std::string_view name) {
  if (name.empty() || name[0] < '1' || name[0] > '9') return std::nullopt;
  std::int64_t version = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), version);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return version;
}

Result<std::optional<std::int64_t>> ParseRequestedVersion(std::string_view text) {
  if (text.empty() || !std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; })) {
    return Invalid("the model version '{}' is not a whole number", Quotable(text));
  }
  const std::size_t first = text.find_first_not_of('0');
  return ParseVersionFolder(first == std::string_view::npos ? "" : text.substr(first));
}

}  // namespace tandem::repository
