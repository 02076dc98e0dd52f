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
struct Call {
  std::shared_ptr<http::Exchange> exchange;  // Shared: the answer may come later, from another thread.
  std::vector<std::string> variables;
};

using Handler = std::function<void(Call)>;

// What a call without tensors and files may send.
inline constexpr std::size_t kMaxControlBody = std::size_t{1} << 20;

// "/v2/models/{model}/infer": a segment in braces matches anything.
struct Route {
  http::Method method;
  std::string pattern;
  Handler handler;
  std::size_t max_body = kMaxControlBody;
  bool unpacks = false;  // It takes bodies that are packed.
};

// Finds the handler of a request. Immutable after construction; thread-safe.
class Router {
 public:
  explicit Router(std::vector<Route> routes);

  // Calls the handler, or answers: 400 for a malformed path, 404 for an unknown one, 405 with Allow for another method,
  // 413 for a body that the call does not take, 415 for one that is packed where it must not be.
  void Dispatch(std::shared_ptr<http::Exchange> exchange) const;

  // Refuses a body that the head says is too large for its call; nullopt lets it come.
  [[nodiscard]] std::optional<http::Response> RefuseBody(const http::RequestHead& head) const;

  [[nodiscard]] const std::vector<Route>& routes() const { return routes_; }

 private:
  using Path = std::vector<std::string>;
  // The index of the route; else the answer, 404 or 405.
  [[nodiscard]] std::expected<std::size_t, http::Response> Find(const http::RequestHead& head, const Path& path) const;
  [[nodiscard]] std::string AllowedMethods(const Path& path) const;

  std::vector<Route> routes_;
  std::vector<std::vector<std::string>> patterns_;  // The split pattern of each route.
};

}  // namespace tandem::rest
