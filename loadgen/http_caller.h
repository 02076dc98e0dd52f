#pragma once

#include <chrono>
#include <functional>
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

// An answer that is heard piece by piece, for as long as it grows.
struct HttpListening {
  std::chrono::nanoseconds timeout{};                                                // Until its head has come.
  std::chrono::nanoseconds max_silence = std::chrono::hours(24 * 365);               // From then on, between pieces.
  std::function<bool(std::string_view piece)> on_piece = [](auto) { return true; };  // False: enough.
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

  // The same for an answer that may go on for long. The body of a successful one goes to `on_piece` as it comes, in
  // pieces that need not be those that the server wrote, and is not in the answer; any other is answered as by Call().
  // When `on_piece` has had enough the connection is closed.
  [[nodiscard]] Result<HttpAnswer> Listen(const HttpRequest& request, const HttpListening& listening);

  // Somebody has taken a connection, whatever came of it.
  [[nodiscard]] bool reached() const { return address_.has_value(); }

 private:
  HttpCaller(const Target& target, std::unique_ptr<TlsClient> tls) : target_(target), tls_(std::move(tls)) {}

  [[nodiscard]] Status Connect(MonotonicTime until);
  // `listening` is null when the whole answer is wanted at once.
  [[nodiscard]] Result<HttpAnswer> Exchange(const HttpRequest& request, MonotonicTime until,
                                            const HttpListening* listening);
  // Empty: the connection was closed without a byte of an answer.
  [[nodiscard]] Result<std::optional<HttpAnswer>> TryCall(const HttpRequest& request, MonotonicTime until,
                                                          const HttpListening* listening);
  [[nodiscard]] std::unexpected<Error> Failed(std::string_view why);

  // Constant after construction.
  const Target target_;
  const std::unique_ptr<TlsClient> tls_;  // Null: plain.
  // The calling thread only.
  std::optional<SocketAddress> address_;
  std::unique_ptr<HttpConnection> connection_;  // Null: none is kept.
};

}  // namespace tandem::loadgen
