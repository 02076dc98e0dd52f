#include "bench/http_call.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "loadgen/http_response_reader.h"
#include "loadgen/infer_request_bytes.h"

namespace tandem::bench {
namespace {

constexpr int kPatienceMs = 5000;

struct Answered {
  loadgen::Socket socket;
  int status;
};

std::unexpected<Error> CallFailed(int port, const char* what) {
  return Fail(ErrorCode::kUnavailable, "port {}: {}", port, what);
}

bool WaitFor(const loadgen::Socket& socket, short events) {
  pollfd entry{.fd = socket.fd(), .events = events, .revents = 0};
  return poll(&entry, 1, kPatienceMs) == 1;
}

Result<Answered> Call(int port, const std::string& path) {
  loadgen::SocketAddress address;
  auto& v4 = reinterpret_cast<sockaddr_in&>(address.storage);
  v4.sin_family = AF_INET;
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  v4.sin_port = htons(static_cast<std::uint16_t>(port));
  address.size = sizeof v4;
  TANDEM_ASSIGN(loadgen::Socket socket, loadgen::StartConnect(address));
  if (!WaitFor(socket, POLLOUT)) return CallFailed(port, "no connection in time");
  const std::string request = loadgen::BuildGet("127.0.0.1", port, path).head;
  if (send(socket.fd(), request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size())) {
    return CallFailed(port, std::strerror(errno));
  }
  loadgen::HttpResponseReader reader;
  reader.Reset(false);
  while (!reader.done()) {
    if (!WaitFor(socket, POLLIN)) return CallFailed(port, "no answer in time");
    std::array<char, 4096> bytes;
    const ssize_t got = recv(socket.fd(), bytes.data(), bytes.size(), 0);
    if (got <= 0) return CallFailed(port, "connection lost");
    (void)reader.Feed({bytes.data(), static_cast<std::size_t>(got)});
    if (reader.malformed()) return CallFailed(port, "malformed answer");
  }
  return Answered{.socket = std::move(socket), .status = reader.status()};
}

}  // namespace

Result<int> GetStatus(int port, const std::string& path) {
  TANDEM_ASSIGN(const Answered answered, Call(port, path));
  return answered.status;
}

Result<loadgen::Socket> GetAndStay(int port, const std::string& path) {
  TANDEM_ASSIGN(Answered answered, Call(port, path));
  return std::move(answered.socket);
}

bool IsIdle(const loadgen::Socket& socket) {
  char byte = 0;
  return recv(socket.fd(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

}  // namespace tandem::bench
