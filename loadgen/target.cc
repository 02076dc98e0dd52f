#include "loadgen/target.h"

#include <charconv>
#include <utility>

#include "api/wire/json_text.h"
#include "loadgen/http_transport.h"
#include "loadgen/infer_request_bytes.h"

namespace tandem::loadgen {
namespace {

std::unexpected<Error> BadUrl(std::string_view url, std::string_view why) {
  return Invalid("URL '{}' {}; it should look like http://127.0.0.1:8000", Excerpt(url), why);
}

}  // namespace

Result<Target> ParseTarget(std::string_view url) {
  std::string_view rest = url;
  if (const std::size_t colon = rest.find("://"); colon != std::string_view::npos) {
    const std::string_view scheme = rest.substr(0, colon);
    if (scheme == "https" || scheme == "grpc" || scheme == "grpcs") {
      return Fail(ErrorCode::kInvalidArgument, "URL '{}': load over {} is not supported yet, only over http",
                  Excerpt(url), scheme);
    }
    if (scheme != "http") return BadUrl(url, "has a scheme that is not known");
    rest.remove_prefix(colon + 3);
  }
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.find_first_of("/?#@ \t\r\n") != std::string_view::npos)
    return BadUrl(url, "names more than a host and a port");
  Target target;
  std::string_view port;
  bool has_port = false;
  if (rest.starts_with('[')) {
    const std::size_t end = rest.find(']');
    if (end == std::string_view::npos) return BadUrl(url, "has no ']' after its address");
    target.host = rest.substr(1, end - 1);
    rest.remove_prefix(end + 1);
    has_port = rest.starts_with(':');
    if (!has_port && !rest.empty()) return BadUrl(url, "has text behind its address");
    if (has_port) port = rest.substr(1);
  } else {
    const std::size_t colon = rest.find(':');
    target.host = rest.substr(0, colon);
    has_port = colon != std::string_view::npos;
    if (has_port) port = rest.substr(colon + 1);
  }
  if (target.host.empty()) return BadUrl(url, "names no host");
  if (!has_port) return target;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), target.port);
  if (error != std::errc() || end != port.data() + port.size() || target.port < 1 || target.port > 65535) {
    return BadUrl(url, "has a port that is none");
  }
  return target;
}

Result<Fetched> Fetch(const Target& target, const std::string& path, std::chrono::nanoseconds timeout) {
  const Clock& clock = RealClock::Instance();
  HttpRequest request = BuildGet(target.host, target.port, path);
  request.keep_body = true;
  std::vector<HttpRequest> requests;
  requests.push_back(std::move(request));
  TANDEM_ASSIGN(const auto transport,
                HttpTransport::Create(
                    {.host = target.host, .port = target.port, .max_connections = 1, .request_timeout = timeout},
                    std::move(requests), clock));
  transport->Send(0, clock.Now());
  std::vector<RequestRecord> finished;
  while (finished.empty()) transport->Poll(clock.Now() + timeout, finished);
  RequestRecord& record = finished.front();
  if (record.outcome != TransportOutcome::kAnswered) {
    return Fail(ErrorCode::kUnavailable, "GET {} at {}: {}", path, HostAndPort(target.host, target.port),
                TransportOutcomeName(record.outcome));
  }
  return Fetched{.status = record.status, .body = std::move(record.body)};
}

}  // namespace tandem::loadgen
