#include "loadgen/socket_address.h"

#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include "api/base/format.h"
#include "api/wire/json_text.h"

namespace tandem::loadgen {
namespace {

std::string ErrnoText(int error) {
  return std::generic_category().message(error);
}

// Waits for a connection under way; 0 or an errno.
int FinishConnect(const Socket& socket, std::chrono::milliseconds timeout) {
  pollfd entry{.fd = socket.fd(), .events = POLLOUT, .revents = 0};
  const int ready = poll(&entry, 1, static_cast<int>(timeout.count()));
  if (ready == 0) return ETIMEDOUT;
  if (ready < 0) return errno;
  return ConnectError(socket.fd());
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    Close();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void Socket::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

std::string HostAndPort(const std::string& host, int port) {
  const bool ipv6 = host.find(':') != std::string::npos && !host.starts_with('[');
  return ipv6 ? Format("[{}]:{}", host, port) : Format("{}:{}", host, port);
}

Result<Socket> StartConnect(const SocketAddress& address) {
  Socket made(socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!made.open()) return Fail(ErrorCode::kUnavailable, "{}", ErrnoText(errno));
  const int on = 1;
  setsockopt(made.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (connect(made.fd(), reinterpret_cast<const sockaddr*>(&address.storage), address.size) != 0 &&
      errno != EINPROGRESS) {
    return Fail(ErrorCode::kUnavailable, "{}", ErrnoText(errno));
  }
  return made;
}

int ConnectError(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

Result<SocketAddress> FindServer(const std::string& host, int port, std::chrono::milliseconds timeout) {
  if (port < 1 || port > 65535) return Invalid("port must be between 1 and 65535, got {}", port);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  const std::string name = bracketed ? host.substr(1, host.size() - 2) : host;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* raw = nullptr;
  if (const int error = getaddrinfo(name.c_str(), std::to_string(port).c_str(), &hints, &raw); error != 0) {
    return Fail(ErrorCode::kUnavailable, "host '{}' cannot be resolved: {}", Excerpt(host), gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> found(raw, &freeaddrinfo);
  std::string reason = "no address";
  for (const addrinfo* entry = raw; entry != nullptr; entry = entry->ai_next) {
    if (entry->ai_addrlen > sizeof(sockaddr_storage)) continue;
    SocketAddress address;
    std::memcpy(&address.storage, entry->ai_addr, entry->ai_addrlen);
    address.size = entry->ai_addrlen;
    auto socket = StartConnect(address);
    if (!socket) {
      reason = socket.error().message;
      continue;
    }
    const int error = FinishConnect(*socket, timeout);
    if (error == 0) return address;
    reason = ErrnoText(error);
  }
  return Fail(ErrorCode::kUnavailable, "cannot connect to {}: {}", Excerpt(HostAndPort(host, port)), reason);
}

}  // namespace tandem::loadgen
