#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "api/base/result.h"
#include "loadgen/socket_address.h"

namespace tandem::bench {

// How many bytes the request at the beginning of `text` has, head and body, or 0 when its head is not yet complete. By
// Content-Length alone: for clients of our own. Pure.
[[nodiscard]] std::size_t RequestBytes(std::string_view text);

// An HTTP/1.1 server that answers every request with the same few bytes, as cheaply as it can: what a load generator is
// measured against. One thread, which calls Run(); other threads may call Stop(). Keep-alive; pipelined requests are
// answered in order.
class NullServer {
 public:
  struct Options {
    int port = 0;       // 0: one that is free.
    bool hold = false;  // Only GET is answered; everything else waits for ever.
  };

  // Listens on the loopback.
  [[nodiscard]] static Result<std::unique_ptr<NullServer>> Make(const Options& options);
  ~NullServer();
  NullServer(const NullServer&) = delete;
  NullServer& operator=(const NullServer&) = delete;

  [[nodiscard]] int port() const { return port_; }
  // Until Stop(); returns what has gone wrong, if anything.
  [[nodiscard]] Status Run();
  // Thread-safe, and fit for a signal handler.
  void Stop();

 private:
  struct Connection {
    loadgen::Socket socket;
    std::string pending;   // A head that is not complete yet.
    std::size_t left = 0;  // Bytes of the present request that are still to come.
    bool answer = true;    // It is one that is answered.
  };

  NullServer(const Options& options, loadgen::Socket listener, loadgen::Socket epoll, loadgen::Socket wake, int port);
  void Accept();
  // False when the connection is of no more use.
  bool Serve(Connection& connection);
  // Takes in what has come; how many requests it has completed that are answered.
  std::size_t TakeRequests(Connection& connection, std::string_view text) const;

  // Constant after construction.
  const Options options_;
  const loadgen::Socket listener_;
  const loadgen::Socket epoll_;
  const loadgen::Socket wake_;
  const int port_;
  std::atomic<bool> stop_{false};

  // The running thread only.
  std::unordered_map<int, Connection> connections_;  // By descriptor.
  std::string scratch_;
};

}  // namespace tandem::bench
