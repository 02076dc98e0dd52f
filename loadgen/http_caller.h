#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "api/base/clock.h"
#include "api/base/result.h"
#include "loadgen/http_connection.h"
#include "loadgen/http_request.h"
#include "loadgen/target.h"
#include "loadgen/tls_client.h"

namespace tandem::loadgen {

struct HttpAnswer {
  int status = 0;
  std::string body;
  std::optional<std::string> json_bytes;  // The header Inference-Header-Content-Length, as it came.
};

// A blocking HTTP client with one connection, plain or over TLS, which is kept as long as the server keeps it. For
// questions that are not load: metadata, metrics, the commands of the program. Used by one thread.
class HttpCaller {
 public:
  // Connects to nobody yet. `tls` counts for an https target only; kInvalidArgument: one of its files cannot be used.
  [[nodiscard]] static Result<std::unique_ptr<HttpCaller>> Create(const Target& target,
                                                                  const TlsClientOptions& tls = {});

  // One request and its whole answer, within `timeout`. A request whose kept connection turns out to be closed is sent
  // once more on a new one. The error (kUnavailable) says what went wrong between here and the server.
  [[nodiscard]] Result<HttpAnswer> Call(const HttpRequest& request, std::chrono::nanoseconds timeout);

  // Somebody has taken a connection, whatever came of it.
  [[nodiscard]] bool reached() const { return address_.has_value(); }

 private:
  HttpCaller(const Target& target, std::unique_ptr<TlsClient> tls) : target_(target), tls_(std::move(tls)) {}

  [[nodiscard]] Status Connect(MonotonicTime until);
  // Empty: the connection was closed without a byte of an answer.
  [[nodiscard]] Result<std::optional<HttpAnswer>> TryCall(const HttpRequest& request, MonotonicTime until);
  [[nodiscard]] std::unexpected<Error> Failed(std::string_view why);

  // Constant after construction.
  const Target target_;
  const std::unique_ptr<TlsClient> tls_;  // Null: plain.
  // The calling thread only.
  std::optional<SocketAddress> address_;
  std::unique_ptr<HttpConnection> connection_;  // Null: none is kept.
};

}  // namespace tandem::loadgen
