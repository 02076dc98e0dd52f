#pragma once

#include <cstddef>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/result.h"
#include "server/http/exchange.h"

namespace tandem::rest {

// One request on its way through a handler: what to answer to, and the path's variables in order.
using Variables = std::vector<std::string>;
struct Call {
  std::shared_ptr<http::Exchange> exchange;  // Shared: the answer may come later, from another thread.
  Variables variables;
};

using Handler = std::function<void(Call)>;

// Refuses a request by its head, before its large body is read; nullopt lets it come. Must not block.
using RefuseUnread = std::function<std::optional<http::Response>(const http::RequestHead&, const Variables&)>;
// What is worth to be asked about.
inline constexpr std::size_t kLargeUnread = 256 * 1024;

// What a call without tensors and files may send.
inline constexpr std::size_t kMaxControlBody = std::size_t{1} << 20;

// "/v2/models/{model}/infer": a segment in braces matches anything.
struct Route {
  http::Method method;
  std::string pattern;
  Handler handler;
  std::size_t max_body = kMaxControlBody;
  bool unpacks = false;      // It takes bodies that are packed.
  RefuseUnread refuse = {};  // NOLINT(readability-redundant-member-init): May be empty, and left out of an initializer.
};

// Finds the handler of a request. Immutable after construction; thread-safe.
class Router {
 public:
  explicit Router(std::vector<Route> routes);

  // Calls the handler, or answers: 400 for a malformed path, 404 for an unknown one, 405 with Allow for another method,
  // 413 for a body that the call does not take, 415 for one that is packed where it must not be.
  void Dispatch(std::shared_ptr<http::Exchange> exchange) const;

  // Refuses a body that the head says is too large for its call, or that the call will have been made in vain for;
  // nullopt lets it come.
  [[nodiscard]] std::optional<http::Response> RefuseBody(const http::RequestHead& head) const;

  [[nodiscard]] const std::vector<Route>& routes() const { return routes_; }

 private:
  using Path = std::vector<std::string>;
  // The index of the route; else the answer, 404 or 405.
  [[nodiscard]] std::expected<std::size_t, http::Response> Find(const http::RequestHead& head, const Path& path) const;
  [[nodiscard]] std::string AllowedMethods(const Path& path) const;
  // Of the path that the route has matched; takes them out of it.
  [[nodiscard]] Variables VariablesOf(std::size_t route, Path& path) const;

  std::vector<Route> routes_;
  std::vector<std::vector<std::string>> patterns_;  // The split pattern of each route.
};

}  // namespace tandem::rest
