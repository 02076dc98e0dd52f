#include "server/http/path.h"

#include <algorithm>

#include "api/wire/json_text.h"
#include "server/http/text.h"

namespace tandem::http {

Result<std::string> DecodeSegment(std::string_view segment) {
  std::string decoded;
  decoded.reserve(segment.size());
  for (std::size_t i = 0; i < segment.size(); ++i) {
    char c = segment[i];
    if (c == '%') {
      const int high = i + 1 < segment.size() ? HexValue(segment[i + 1]) : -1;
      const int low = i + 2 < segment.size() ? HexValue(segment[i + 2]) : -1;
      if (high < 0 || low < 0) return Invalid("path segment {} has an invalid percent escape", Quoted(segment));
      c = static_cast<char>(high * 16 + low);
      i += 2;
    }
    if (IsControl(c)) return Invalid("path segment {} has a control character", Quoted(segment));
    if (c == '/' || c == '\\') return Invalid("path segment {} has a slash in it", Quoted(segment));
    decoded += c;
  }
  if (decoded == "." || decoded == "..") return Invalid("path segment {} is not allowed", Quoted(segment));
  if (!IsValidUtf8(decoded)) return Invalid("path segment {} is not UTF-8", Quoted(segment));
  return decoded;
}

Result<std::vector<std::string>> SplitPath(std::string_view path) {
  if (!path.starts_with('/')) return Invalid("path {} does not begin with '/'", Quoted(path));
  std::vector<std::string> segments;
  std::string_view rest = path.substr(1);
  if (rest.empty()) return segments;
  // Bad segments are reported before empty ones: the first are the caller's mistake wherever they stand.
  bool has_empty = false;
  while (true) {
    const std::size_t slash = std::min(rest.find('/'), rest.size());
    TANDEM_ASSIGN(std::string segment, DecodeSegment(rest.substr(0, slash)));
    has_empty = has_empty || segment.empty();
    segments.push_back(std::move(segment));
    if (slash == rest.size()) break;
    rest.remove_prefix(slash + 1);
  }
  if (has_empty) return Fail(ErrorCode::kNotFound, "path {} has an empty segment", Quoted(path));
  return segments;
}

}  // namespace tandem::http
