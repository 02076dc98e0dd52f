#include "server/rest/router.h"

#include <algorithm>
#include <utility>

#include "api/base/format.h"
#include "api/wire/json_text.h"
#include "server/http/path.h"
#include "server/http/text.h"

namespace tandem::rest {
namespace {

bool IsVariable(std::string_view segment) {
  return segment.starts_with('{');
}

bool Matches(const std::vector<std::string>& pattern, const std::vector<std::string>& path) {
  if (pattern.size() != path.size()) return false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (!IsVariable(pattern[i]) && pattern[i] != path[i]) return false;
  }
  return true;
}

std::vector<std::string> SplitPattern(std::string_view pattern) {
  std::vector<std::string> segments;
  while (!pattern.empty()) {
    pattern.remove_prefix(1);
    const auto end = std::min(pattern.find('/'), pattern.size());
    segments.emplace_back(pattern.substr(0, end));
    pattern.remove_prefix(end);
  }
  return segments;
}

http::Response TooLarge(std::uint64_t size, std::size_t most) {
  return http::ErrorResponse(413, Format("the body has {} bytes; this call takes at most {}", size, most));
}

// Whether the body is packed in any way.
bool IsPacked(const http::RequestHead& head) {
  const std::string_view encoding = head.Header("content-encoding");
  return !encoding.empty() && !http::EqualsIgnoringCase(encoding, "identity");
}

http::Response NotUnpacked(const http::RequestHead& head) {
  const std::string encoding = Excerpt(head.Header("content-encoding"));
  http::Response refusal =
      http::ErrorResponse(415, Format("Content-Encoding is '{}'; only inference takes packed bodies", encoding));
  refusal.headers.emplace_back("Accept-Encoding", "identity");
  return refusal;
}

}  // namespace

Router::Router(std::vector<Route> routes) : routes_(std::move(routes)) {
  patterns_.reserve(routes_.size());
  for (const Route& route : routes_) patterns_.push_back(SplitPattern(route.pattern));
}

std::expected<std::size_t, http::Response> Router::Find(const http::RequestHead& head, const Path& path) const {
  const http::Method method = head.method() == http::Method::kHead ? http::Method::kGet : head.method();
  bool known = false;
  for (std::size_t r = 0; r < routes_.size(); ++r) {
    if (!Matches(patterns_[r], path)) continue;
    if (routes_[r].method == method) return r;
    known = true;
  }
  if (!known) return std::unexpected(http::ErrorResponse(404, "no such path: " + Excerpt(head.path())));
  const std::string allowed = AllowedMethods(path);
  http::Response refusal =
      http::ErrorResponse(405, Excerpt(head.method_name()) + " is not allowed here; allowed: " + allowed);
  refusal.headers.emplace_back("Allow", allowed);
  return std::unexpected(std::move(refusal));
}

std::string Router::AllowedMethods(const Path& path) const {
  std::string allowed;
  for (const http::Method method : {http::Method::kGet, http::Method::kPost, http::Method::kPut, http::Method::kPatch,
                                    http::Method::kDelete, http::Method::kOptions}) {
    for (std::size_t r = 0; r < routes_.size(); ++r) {
      if (routes_[r].method != method || !Matches(patterns_[r], path)) continue;
      if (!allowed.empty()) allowed += ", ";
      allowed += http::MethodName(method);
      if (method == http::Method::kGet) allowed += ", HEAD";
      break;
    }
  }
  return allowed;
}

void Router::Dispatch(std::shared_ptr<http::Exchange> exchange) const {
  const http::Request& request = exchange->request();
  auto path = http::SplitPath(request.head.path());
  if (!path) return exchange->Respond(http::ErrorResponse(path.error()));
  auto found = Find(request.head, *path);
  if (!found) return exchange->Respond(std::move(found).error());
  const Route& route = routes_[*found];
  if (request.body.size() > route.max_body) {
    return exchange->Respond(TooLarge(request.body.size(), route.max_body));
  }
  if (!route.unpacks && request.body.size() > 0 && IsPacked(request.head)) {
    return exchange->Respond(NotUnpacked(request.head));
  }
  route.handler({.exchange = std::move(exchange), .variables = VariablesOf(*found, *path)});
}

std::optional<http::Response> Router::RefuseBody(const http::RequestHead& head) const {
  const auto size = http::ParseDecimal(head.Header("content-length"));
  if (!size || *size < kLargeUnread) return std::nullopt;
  auto path = http::SplitPath(head.path());
  auto found = path ? Find(head, *path) : std::unexpected(http::ErrorResponse(path.error()));
  if (!found) {
    // One that may be read is, so that the connection lives on.
    if (*size <= kMaxControlBody) return std::nullopt;
    return std::move(found).error();
  }
  const Route& route = routes_[*found];
  if (*size > route.max_body) return TooLarge(*size, route.max_body);
  if (!route.refuse) return std::nullopt;
  return route.refuse(head, VariablesOf(*found, *path));
}

Variables Router::VariablesOf(std::size_t route, Path& path) const {
  Variables variables;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (IsVariable(patterns_[route][i])) variables.push_back(std::move(path[i]));
  }
  return variables;
}

}  // namespace tandem::rest
