#include "server/http/path.h"

#include <algorithm>

#include "api/wire/json_text.h"
#include "server/http/text.h"

namespace tandem::http {
namespace {

constexpr std::size_t kMostParameters = 32;

// `what` says what the text is a part of, for messages.
Result<std::string> PercentDecode(std::string_view text, std::string_view what) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      const int high = i + 1 < text.size() ? HexValue(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? HexValue(text[i + 2]) : -1;
      if (high < 0 || low < 0) return Invalid("{} {} has an invalid percent escape", what, Quoted(text));
      c = static_cast<char>(high * 16 + low);
      i += 2;
    }
    if (IsControl(c)) return Invalid("{} {} has a control character", what, Quoted(text));
    decoded += c;
  }
  if (!IsValidUtf8(decoded)) return Invalid("{} {} is not UTF-8", what, Quoted(text));
  return decoded;
}

}  // namespace

Result<std::string> DecodeSegment(std::string_view segment) {
  TANDEM_ASSIGN(std::string decoded, PercentDecode(segment, "path segment"));
  if (decoded.find_first_of("/\\") != std::string::npos) {
    return Invalid("path segment {} has a slash in it", Quoted(segment));
  }
  if (decoded == "." || decoded == "..") return Invalid("path segment {} is not allowed", Quoted(segment));
  return decoded;
}

Result<std::map<std::string, std::string>> ParseQuery(std::string_view query) {
  std::map<std::string, std::string> parameters;
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    if (pair.empty()) continue;
    const std::size_t equals = std::min(pair.find('='), pair.size());
    TANDEM_ASSIGN(std::string name, PercentDecode(pair.substr(0, equals), "query parameter"));
    TANDEM_ASSIGN(std::string value, PercentDecode(pair.substr(std::min(pair.size(), equals + 1)), "query parameter"));
    if (parameters.size() >= kMostParameters) return Invalid("the query has more than {} parameters", kMostParameters);
    const auto [place, is_new] = parameters.emplace(std::move(name), std::move(value));
    if (!is_new) return Invalid("query parameter {} is given twice", Quoted(place->first));
  }
  return parameters;
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
