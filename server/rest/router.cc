#include "server/rest/router.h"

#include <utility>

#include "api/wire/json_text.h"
#include "server/http/path.h"

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

}  // namespace

Router::Router(std::vector<Route> routes) : routes_(std::move(routes)) {
  patterns_.reserve(routes_.size());
  for (const Route& route : routes_) patterns_.push_back(SplitPattern(route.pattern));
}

void Router::Dispatch(std::shared_ptr<http::Exchange> exchange) const {
  const http::RequestHead& head = exchange->request().head;
  auto path = http::SplitPath(head.path());
  if (!path) return exchange->Respond(http::ErrorResponse(path.error()));
  const http::Method method = head.method() == http::Method::kHead ? http::Method::kGet : head.method();

  std::string allowed;
  for (std::size_t r = 0; r < routes_.size(); ++r) {
    if (!Matches(patterns_[r], *path)) continue;
    if (routes_[r].method != method) {
      if (!allowed.empty()) allowed += ", ";
      allowed += http::MethodName(routes_[r].method);
      continue;
    }
    Call call{.exchange = std::move(exchange), .variables = {}};
    for (std::size_t i = 0; i < path->size(); ++i) {
      if (IsVariable(patterns_[r][i])) call.variables.push_back(std::move((*path)[i]));
    }
    return routes_[r].handler(std::move(call));
  }
  if (allowed.empty()) {
    return exchange->Respond(http::ErrorResponse(404, "no such path: " + Excerpt(head.path())));
  }
  http::Response refusal = http::ErrorResponse(
      405, std::string(http::MethodName(head.method())) + " is not allowed here; allowed: " + allowed);
  refusal.headers.emplace_back("Allow", allowed);
  exchange->Respond(std::move(refusal));
}

}  // namespace tandem::rest
