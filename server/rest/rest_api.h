#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "server/auth/token_check.h"
#include "server/core/server_core.h"
#include "server/http/exchange.h"
#include "server/rest/router.h"

namespace tandem::rest {

// The REST front end: routes, tokens, and nothing of its own to compute. Handle() is called on the HTTP loops.
// Immutable after construction; thread-safe.
class RestApi {
 public:
  struct Options {
    std::size_t max_body = 0;
    std::function<std::string()> metrics;  // The text of GET /metrics.
  };

  // Borrows core and tokens, which outlive it.
  RestApi(ServerCore& core, const TokenCheck& tokens, Options options);

  void Handle(std::shared_ptr<http::Exchange> exchange) const;
  // Refuses a request by its head alone, before its body is read; nullopt lets it in.
  [[nodiscard]] std::optional<http::Response> Refuse(const http::RequestHead& head) const;

  [[nodiscard]] const Router& router() const { return router_; }

 private:
  [[nodiscard]] std::optional<http::Response> RefuseStranger(const http::RequestHead& head) const;

  const TokenCheck& tokens_;
  const Router router_;
};

// The second listener: GET /metrics and nothing else.
[[nodiscard]] Router MetricsRouter(std::function<std::string()> metrics);

// The OpenAPI document of the REST API, as JSON.
[[nodiscard]] const std::string& OpenApiDocument();

}  // namespace tandem::rest
