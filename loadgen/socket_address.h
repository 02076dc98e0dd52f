#pragma once

#include <chrono>
#include <string>
#include <utility>

#include <sys/socket.h>

#include "api/base/result.h"

namespace tandem::loadgen {

// A file descriptor that is closed with its owner. Move-only.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket() { Close(); }

  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] bool open() const { return fd_ >= 0; }
  void Close();

 private:
  int fd_ = -1;
};

// Where a TCP server listens, resolved.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

// "example:8000" or "[::1]:8000": as in a Host header.
[[nodiscard]] std::string HostAndPort(const std::string& host, int port);

// Starts to connect, without waiting: success means connected or under way. The error is an errno text.
[[nodiscard]] Result<Socket> StartConnect(const SocketAddress& address);

// What became of a connection that was started, once its socket can be written to: 0 or an errno.
[[nodiscard]] int ConnectError(int fd);

// Resolves the host (a name or an IPv4 or IPv6 address) and finds which of its addresses answers, with a connection to
// each in turn. Blocks, at most `timeout` per address. The error says what failed: the name, or the connection.
[[nodiscard]] Result<SocketAddress> FindServer(const std::string& host, int port, std::chrono::milliseconds timeout);

}  // namespace tandem::loadgen
