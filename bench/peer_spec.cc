#include "bench/peer_spec.h"

#include <algorithm>

#include "api/base/format.h"
#include "api/wire/json_text.h"

namespace tandem::bench {
namespace {

constexpr double kLongestStart = 600;
constexpr std::size_t kMaxName = 64;

bool IsNameLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

Result<std::string> Name(JsonFields& fields, const std::string& field, const std::string& name) {
  if (name.size() > kMaxName || !std::ranges::all_of(name, IsNameLetter)) {
    return Invalid("{}: must be of a-z, 0-9 and _, at most {} of them, not '{}'", fields.At(field), kMaxName,
                   Excerpt(name));
  }
  return name;
}

// The end of the placeholder that begins at `at`, or npos: "{name}".
std::size_t PlaceholderEnd(std::string_view text, std::size_t at) {
  std::size_t end = at + 1;
  while (end < text.size() && IsNameLetter(text[end])) ++end;
  return end > at + 1 && end < text.size() && text[end] == '}' ? end : std::string_view::npos;
}

// Tries the text with a value for every name, so that a wrong one is told before anything is started.
Status CheckPlaceholders(std::string_view text, const std::string& pointer) {
  std::map<std::string, std::string, std::less<>> values;
  for (const std::string_view name : kPeerPlaceholders) values.emplace(name, "");
  const auto filled = FillPlaceholders(text, values);
  if (!filled) return Invalid("{}: {}", pointer, filled.error().message);
  return {};
}

Status CheckTexts(const PeerSpec& peer, const JsonFields& fields) {
  bool port = false;
  bool python = false;
  const auto look = [&](const std::string& text, const std::string& pointer) -> Status {
    port = port || text.contains("{port}");
    python = python || text.contains("{python}");
    return CheckPlaceholders(text, pointer);
  };
  for (std::size_t i = 0; i < peer.command.size(); ++i) {
    TANDEM_TRY(look(peer.command[i], Format("{}/{}", fields.At("command"), i)));
  }
  for (const auto& [name, value] : peer.environment) {
    TANDEM_TRY(look(value, fields.At("environment") + "/" + name));
  }
  TANDEM_TRY(look(peer.ready, fields.At("ready")));
  if (!port) return Invalid("{}: nothing tells the peer where to listen; {{port}} is missing", fields.At("command"));
  if (python && peer.packages.empty()) {
    return Invalid("{}: is missing; {{python}} is that of a list of packages", fields.At("packages"));
  }
  return {};
}

}  // namespace

Result<PeerSpec> ParsePeer(JsonFields fields) {
  PeerSpec peer;
  TANDEM_ASSIGN(peer.name, fields.Text("name"));
  TANDEM_TRY(Name(fields, "name", peer.name));
  TANDEM_ASSIGN(peer.packages, fields.TextOr("packages", ""));
  TANDEM_TRY(Name(fields, "packages", peer.packages));
  TANDEM_ASSIGN(peer.command, fields.Texts("command"));
  if (peer.command.empty()) return Invalid("{}: is missing", fields.At("command"));
  TANDEM_ASSIGN(peer.environment, fields.TextMembers("environment"));
  TANDEM_ASSIGN(peer.ready, fields.Text("ready"));
  if (!peer.ready.starts_with('/') || peer.ready.contains(' ')) {
    return Invalid("{}: must be a path such as /v2/health/ready, not '{}'", fields.At("ready"), Excerpt(peer.ready));
  }
  TANDEM_ASSIGN(const double seconds, fields.Number("start_timeout_s", 0.1, kLongestStart));
  peer.start_timeout = std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1e3));
  TANDEM_TRY(fields.Finish());
  TANDEM_TRY(CheckTexts(peer, fields));
  return peer;
}

Result<const PeerSpec*> FindPeer(const std::vector<PeerSpec>& peers, const std::string& name,
                                 const std::string& pointer) {
  std::string known;
  for (const PeerSpec& peer : peers) {
    if (peer.name == name) return &peer;
    known += (known.empty() ? "" : ", ") + peer.name;
  }
  return Fail(ErrorCode::kNotFound, "{}: there is no peer '{}'; there is {}", pointer, Excerpt(name),
              known.empty() ? "none" : known);
}

Result<std::string> FillPlaceholders(std::string_view text,
                                     const std::map<std::string, std::string, std::less<>>& values) {
  std::string out;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = text[at] == '{' ? PlaceholderEnd(text, at) : std::string_view::npos;
    if (end == std::string_view::npos) {
      out += text[at++];
      continue;
    }
    const std::string_view name = text.substr(at + 1, end - at - 1);
    const auto value = values.find(name);
    if (value == values.end()) return Invalid("'{{{}}}' is no placeholder that is known here", Excerpt(name));
    out += value->second;
    at = end + 1;
  }
  return out;
}

}  // namespace tandem::bench
