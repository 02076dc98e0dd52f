#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/base/clock.h"
#include "server/http/limits.h"
#include "server/http/request.h"
#include "server/http/response.h"
#include "server/http/tls.h"

namespace tandem::http {

class Exchange;
class IoLoops;

// How long the server waits for a client. Looked at once per tick, so each may take a tick longer.
struct Timeouts {
  std::chrono::milliseconds header{10'000};  // From a request's first byte to the end of its head; TLS handshake.
  std::chrono::milliseconds idle{75'000};    // Between requests.
  // Between requests while nearly all connections are taken: room for those who have something to say.
  std::chrono::milliseconds crowded_idle{1'000};
  // How fast a body must come and an answer be taken, on average over one such time after the other.
  std::size_t min_bytes_per_second = 1024;
  std::chrono::milliseconds body_window{10'000};
  std::chrono::milliseconds answer_window{30'000};
  std::chrono::milliseconds linger{5'000};  // For the client to read a last answer and close.
  std::chrono::milliseconds tick{500};
};

struct ServerOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  // 0: any free one; HttpServer::port() tells.
  std::optional<TlsOptions> tls;

  std::shared_ptr<IoLoops> loops;  // Shared with other servers; null: io_threads loops of its own.
  std::size_t io_threads = 1;
  std::chrono::nanoseconds poll_window{0};  // Of loops of its own; see IoLoop.

  Limits limits;
  Timeouts timeouts;
  std::size_t max_connections = 16384;                // Never more than what the limit on open files leaves room for.
  std::size_t max_body_total = std::size_t{2} << 30;  // Of all bodies held at once; then 503.
  // Of all answers that clients have not taken; then 503 instead of a large one. One alone may be of any size.
  std::size_t max_answer_total = std::size_t{2} << 30;
  std::size_t max_stream_pending = std::size_t{64} << 20;  // Of one stream that is not read; then it is cut.
  std::size_t max_linger_bytes = std::size_t{512} << 20;   // Thrown away after a refusal, so that the client sees it.

  // Asked on the loop's thread when a head that announces a body is complete: an answer refuses the request before its
  // body is read (wrong token, a body that the call does not take). Must not block. May be empty.
  std::function<std::optional<Response>(const RequestHead&)> refuse_early;

  const Clock* clock = &RealClock::Instance();  // Borrowed; outlives the server.
};

// Called on the connection's loop thread with each complete request. Must not block: work goes to other threads, which
// answer through the exchange.
using Handler = std::function<void(std::shared_ptr<Exchange>)>;

}  // namespace tandem::http
