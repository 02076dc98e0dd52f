#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "api/base/result.h"
#include "server/http/exchange.h"
#include "server/http/io_loops.h"
#include "server/http/listener.h"
#include "server/http/server_options.h"
#include "server/http/shard.h"

namespace tandem::http {

// An HTTP/1.1 server on one port: trantor's event loops under our own strict framing, sockets and TLS. Started and
// stopped by main(), never from an I/O loop's thread. Exchanges may outlive it. SIGPIPE is ignored from the first
// start on.
class HttpServer {
 public:
  // Listens at once; an address that cannot be had or a bad certificate is an error that names it.
  [[nodiscard]] static Result<std::unique_ptr<HttpServer>> Start(ServerOptions options, Handler handler);
  // Stops.
  ~HttpServer();

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] std::size_t connections() const { return core_->connections.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t requests() const { return core_->requests.load(std::memory_order_relaxed); }

  // Closes the port; connections go on.
  void StopAccepting();
  // Closes the port and idle connections, and every other one as soon as its request is answered. True when none is
  // left, false when that took longer than `patience`.
  bool Drain(std::chrono::milliseconds patience);
  // Closes everything; exchanges under way are cancelled.
  void Stop();

 private:
  HttpServer() = default;
  void OnAccept(UniqueFd fd);

  // Constant after Start.
  std::unique_ptr<ServerCore> core_;
  std::shared_ptr<IoLoops> loops_;  // Shared with other servers.
  std::unique_ptr<Listener> listener_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::uint16_t port_ = 0;

  std::size_t next_shard_ = 0;  // First loop's thread only.
  bool stopped_ = false;        // Owner's thread only.
};

}  // namespace tandem::http
