#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "api/base/clock.h"
#include "api/base/mutex.h"
#include "server/http/body_buffer.h"
#include "server/http/connection.h"
#include "server/http/io_loops.h"
#include "server/http/server_options.h"

namespace tandem::http {

// What all shards of a server share. Owned by the server, outlives the shards. Thread-safe.
struct ServerCore {
  // Constant after construction.
  ServerOptions options;
  Handler handler;
  std::unique_ptr<TlsContext> tls;
  std::shared_ptr<ByteBudget> budget;  // Shared with bodies that outlive the server.
  std::shared_ptr<ByteBudget> answers;

  std::atomic<std::size_t> connections{0};
  std::atomic<std::uint64_t> requests{0};
  std::atomic<bool> draining{false};

  Mutex mu;
  CondVar fewer;  // A connection was closed while draining.

  [[nodiscard]] bool crowded() const {
    return connections.load(std::memory_order_relaxed) >= options.max_connections - options.max_connections / 8;
  }
};

// The connections of one server on one loop, and the buffers they share: an idle connection has none of its own.
// Loop's thread only, but for construction and destruction, which happen while the loop does not know it.
class Shard {
 public:
  Shard(ServerCore& core, std::shared_ptr<IoLoop> loop);
  ~Shard();

  void Start();
  // Takes over an accepted socket, which counts in core.connections already.
  void Adopt(UniqueFd fd);
  void Drain();
  // Closes every connection and stops the clock.
  void Stop();

  // For connections.
  [[nodiscard]] ServerCore& core() { return core_; }
  [[nodiscard]] const ServerOptions& options() const { return core_.options; }
  [[nodiscard]] const std::shared_ptr<IoLoop>& loop() const { return loop_; }
  [[nodiscard]] MonotonicTime Now() const { return core_.options.clock->Now(); }
  [[nodiscard]] std::span<std::byte> input() { return input_; }
  [[nodiscard]] std::string& output() { return output_; }
  [[nodiscard]] std::string_view date() const { return date_; }
  void Remove(Connection& connection);

 private:
  void Tick();

  ServerCore& core_;
  const std::shared_ptr<IoLoop> loop_;                  // Shared with exchanges.
  std::list<std::shared_ptr<Connection>> connections_;  // Shared so that exchanges can hold weak pointers.
  std::uint64_t timer_ = 0;
  std::string date_;
  std::string output_;
  std::array<std::byte, 64 * 1024> input_;
};

}  // namespace tandem::http
