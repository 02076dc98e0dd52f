#include "api/wire/json_text.h"

#include <array>

#include <simdjson.h>

namespace tandem {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr std::string_view kEllipsis = "\xE2\x80\xA6";     // U+2026

// Bytes of the valid UTF-8 sequence at the start of `text`; 0 when there is none.
std::size_t SequenceLength(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  return simdjson::validate_utf8(text.substr(0, length)) ? length : 0;
}

// Per byte: 0 when it stands for itself in a JSON string, 'u' for \u00XX, else the letter after the backslash.
constexpr std::array<char, 256> kEscapes = [] {
  std::array<char, 256> escapes{};
  for (int c = 0; c < 0x20; ++c) escapes[c] = 'u';
  escapes['"'] = '"';
  escapes['\\'] = '\\';
  escapes['\b'] = 'b';
  escapes['\f'] = 'f';
  escapes['\n'] = 'n';
  escapes['\r'] = 'r';
  escapes['\t'] = 't';
  return escapes;
}();

void AppendEscaped(std::string_view valid, std::string& out) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::size_t plain = 0;  // Start of the run that needs no escape.
  for (std::size_t i = 0; i < valid.size(); ++i) {
    const auto c = static_cast<unsigned char>(valid[i]);
    const char escape = kEscapes[c];
    if (escape == 0) continue;
    out.append(valid, plain, i - plain);
    plain = i + 1;
    out += '\\';
    out += escape;
    if (escape == 'u') {
      out += "00";
      out += kHex[c >> 4];
      out += kHex[c & 15];
    }
  }
  out.append(valid, plain);
}

}  // namespace

bool IsValidUtf8(std::string_view text) {
  return simdjson::validate_utf8(text.data(), text.size());
}

bool IsPrintableUtf8(std::string_view text) {
  if (!IsValidUtf8(text)) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const std::string_view rest = text.substr(i);
    if (c < 0x20 || c == 0x7F) return false;
    if (c == 0xC2 && static_cast<unsigned char>(rest[1]) < 0xA0) return false;  // U+0080 to U+009F
    if (rest.starts_with("\xE2\x80\xA8") || rest.starts_with("\xE2\x80\xA9")) return false;
  }
  return true;
}

void AppendJsonString(std::string_view text, std::string& out) {
  out += '"';
  if (IsValidUtf8(text)) {
    AppendEscaped(text, out);
  } else {
    while (!text.empty()) {
      const std::size_t length = SequenceLength(text);
      AppendEscaped(length == 0 ? kReplacement : text.substr(0, length), out);
      text.remove_prefix(length == 0 ? 1 : length);
    }
  }
  out += '"';
}

std::string JsonString(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 2);
  AppendJsonString(text, out);
  return out;
}

std::string Excerpt(std::string_view text) {
  std::string out;
  std::size_t fit = 0;  // Length of `out` that still leaves room for the ellipsis.
  while (!text.empty()) {
    const std::size_t length = SequenceLength(text);
    const auto first = static_cast<unsigned char>(text[0]);
    const bool replace = length == 0 || first < 0x20 || first == 0x7F;
    const std::string_view piece = replace ? kReplacement : text.substr(0, length);
    if (out.size() + piece.size() > kExcerptBytes) {
      out.resize(fit);
      out += kEllipsis;
      return out;
    }
    out += piece;
    if (out.size() + kEllipsis.size() <= kExcerptBytes) fit = out.size();
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

}  // namespace tandem
