#include "loadgen/target.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "api/base/format.h"
#include "api/wire/json_text.h"
#include "loadgen/http_caller.h"
#include "loadgen/infer_request_bytes.h"

namespace tandem::loadgen {
namespace {

constexpr int kHttpPort = 8000;
constexpr int kGrpcPort = 8001;

// "http://127.0.0.1:8000 or https://127.0.0.1:8000"
std::string Examples(std::span<const Scheme> spoken) {
  std::string examples;
  for (const Scheme scheme : spoken) {
    if (!examples.empty()) examples += " or ";
    examples +=
        Format("{}://127.0.0.1:{}", SchemeName(scheme), Target{.scheme = scheme}.grpc() ? kGrpcPort : kHttpPort);
  }
  return examples;
}

Result<Scheme> SchemeOf(std::string_view name) {
  for (const Scheme scheme : kEveryScheme) {
    if (SchemeName(scheme) == name) return scheme;
  }
  return Invalid("has a scheme that is not known");
}

// What stands behind the scheme, into `target`, whose scheme is set. The error goes on from "URL '…' ".
Status ParseHostAndPort(std::string_view rest, Target& target) {
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.find_first_of("/?#@ \t\r\n") != std::string_view::npos) return Invalid("names more than a host and a port");
  std::size_t host_end = rest.find(':');
  if (rest.starts_with('[')) {
    host_end = rest.find(']');
    if (host_end == std::string_view::npos) return Invalid("has no ']' after its address");
    target.host = rest.substr(1, host_end++ - 1);
  } else {
    target.host = rest.substr(0, host_end);
  }
  if (target.host.empty()) return Invalid("names no host");
  target.port = target.grpc() ? kGrpcPort : kHttpPort;
  if (host_end >= rest.size()) return {};
  if (rest[host_end] != ':') return Invalid("has text behind its address");
  const std::string_view port = rest.substr(host_end + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), target.port);
  if (error != std::errc() || end != port.data() + port.size() || target.port < 1 || target.port > 65535) {
    return Invalid("has a port that is none");
  }
  return {};
}

Status ParseInto(std::string_view url, std::span<const Scheme> spoken, Target& target) {
  const std::size_t colon = url.find("://");
  if (colon == std::string_view::npos) return Invalid("has no scheme");
  TANDEM_ASSIGN(target.scheme, SchemeOf(url.substr(0, colon)));
  if (std::ranges::find(spoken, target.scheme) == spoken.end()) {
    return Invalid("asks for {}, which is not spoken here", SchemeName(target.scheme));
  }
  return ParseHostAndPort(url.substr(colon + 3), target);
}

}  // namespace

std::string_view SchemeName(Scheme scheme) {
  switch (scheme) {
    case Scheme::kHttp: return "http";
    case Scheme::kHttps: return "https";
    case Scheme::kGrpc: return "grpc";
    case Scheme::kGrpcs: return "grpcs";
  }
  return "unknown";
}

Result<Target> ParseTarget(std::string_view url, std::span<const Scheme> spoken) {
  Target target;
  if (const Status parsed = ParseInto(url, spoken, target); !parsed) {
    return Invalid("URL '{}' {}; it should look like {}", Excerpt(url), parsed.error().message, Examples(spoken));
  }
  return target;
}

std::string PathSegment(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '.' || c == '_' || c == '~';
    if (plain) {
      out += c;
    } else {
      out += Format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

Result<Fetched> Fetch(const Target& target, const std::string& path, std::chrono::nanoseconds timeout,
                      const TlsClientOptions& tls) {
  TANDEM_ASSIGN(const auto caller, HttpCaller::Create(target, tls));
  HttpRequest request = BuildGet(target.host, target.port, path);
  request.keep_body = true;
  TANDEM_ASSIGN(HttpAnswer answer, caller->Call(request, timeout));
  return Fetched{.status = answer.status, .body = std::move(answer.body)};
}

}  // namespace tandem::loadgen
