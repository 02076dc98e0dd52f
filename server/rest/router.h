#pragma once

#include <functional>
#include <memory>
#include <span>
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

// "/v2/models/{model}/infer": a segment in braces matches anything.
struct Route {
  http::Method method;
  std::string pattern;
  Handler handler;
};

// Finds the handler of a request. Immutable after construction; thread-safe.
class Router {
 public:
  explicit Router(std::vector<Route> routes);

  // Calls the handler, or answers: 400 for a malformed path, 404 for an unknown one, 405 with Allow for another method.
  void Dispatch(std::shared_ptr<http::Exchange> exchange) const;

  [[nodiscard]] const std::vector<Route>& routes() const { return routes_; }

 private:
  std::vector<Route> routes_;
  std::vector<std::vector<std::string>> patterns_;  // The split pattern of each route.
};

}  // namespace tandem::rest
