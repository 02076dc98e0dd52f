#include "bench/loopback.h"

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/base/clock.h"

namespace tandem::bench {
namespace {

using loadgen::Socket;

bool SendAll(int fd, const std::vector<char>& bytes) {
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t n = ::send(fd, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) return false;
    sent += static_cast<std::size_t>(n);
  }
  return true;
}

bool ReceiveAll(int fd, std::vector<char>& bytes) {
  for (std::size_t got = 0; got < bytes.size();) {
    const ssize_t n = ::recv(fd, bytes.data() + got, bytes.size() - got, 0);
    if (n <= 0) return false;
    got += static_cast<std::size_t>(n);
  }
  return true;
}

std::unexpected<Error> Failed(const char* what) {
  return Fail(ErrorCode::kInternal, "loopback: {}: {}", what, std::strerror(errno));
}

}  // namespace

Result<std::unique_ptr<Loopback>> Loopback::Make(std::size_t request_bytes, std::size_t answer_bytes) {
  const Socket listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  Socket client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener.fd(), any, size) != 0 || ::listen(listener.fd(), 1) != 0) return Failed("listen");
  if (::getsockname(listener.fd(), any, &size) != 0 || ::connect(client.fd(), any, size) != 0) return Failed("connect");
  Socket server(::accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!server.open()) return Failed("accept");
  const int on = 1;
  for (const int fd : {client.fd(), server.fd()}) ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return std::unique_ptr<Loopback>(new Loopback(std::move(client), std::move(server), request_bytes, answer_bytes));
}

Loopback::Loopback(Socket client, Socket server, std::size_t request_bytes, std::size_t answer_bytes)
    : request_bytes_(request_bytes),
      answer_bytes_(answer_bytes),
      client_(std::move(client)),
      server_(std::move(server)),
      answering_([this] {
        std::vector<char> request(request_bytes_);
        const std::vector<char> answer(answer_bytes_);
        while (ReceiveAll(server_.fd(), request) && SendAll(server_.fd(), answer)) {
        }
      }) {}

Loopback::~Loopback() {
  ::shutdown(client_.fd(), SHUT_RDWR);
  answering_.join();
}

Result<loadgen::LatencyHistogram> Loopback::Time(std::chrono::nanoseconds warmup, std::chrono::nanoseconds window) {
  const Clock& clock = RealClock::Instance();
  const std::vector<char> request(request_bytes_);
  std::vector<char> answer(answer_bytes_);
  loadgen::LatencyHistogram latency;
  MonotonicTime now = clock.Now();
  const MonotonicTime counted = now + warmup;
  while (now < counted + window) {
    if (!SendAll(client_.fd(), request) || !ReceiveAll(client_.fd(), answer)) return Failed("exchange");
    const MonotonicTime done = clock.Now();
    if (now >= counted) latency.Record(done - now);
    now = done;
  }
  return latency;
}

}  // namespace tandem::bench
