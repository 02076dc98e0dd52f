#include "bench/null_server.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tandem::bench {
namespace {

using loadgen::Socket;

constexpr std::string_view kAnswer = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
constexpr std::string_view kHeadEnd = "\r\n\r\n";
constexpr std::size_t kScratchBytes = 64 << 10;
constexpr std::size_t kMostHead = 64 << 10;
constexpr int kEventsPerWait = 256;
constexpr int kBacklog = 4096;

std::unexpected<Error> Failed(const char* what) {
  return Fail(ErrorCode::kInternal, "null server: {}: {}", what, std::strerror(errno));
}

void Watch(const Socket& epoll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  epoll_ctl(epoll.fd(), EPOLL_CTL_ADD, fd, &event);
}

char Lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// The value of Content-Length in a head, or 0.
std::size_t ContentLength(std::string_view head) {
  constexpr std::string_view kName = "\r\ncontent-length:";
  const auto found = std::ranges::search(head, kName, {}, Lower);
  if (found.empty()) return 0;
  std::string_view value(found.end(), head.end());
  while (value.starts_with(' ')) value.remove_prefix(1);
  std::size_t length = 0;
  std::from_chars(value.data(), value.data() + value.size(), length);
  return length;
}

}  // namespace

std::size_t RequestBytes(std::string_view text) {
  const std::size_t end = text.find(kHeadEnd);
  if (end == std::string_view::npos) return 0;
  return end + kHeadEnd.size() + ContentLength(text.substr(0, end));
}

Result<std::unique_ptr<NullServer>> NullServer::Make(const Options& options) {
  Socket listener(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(listener.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(options.port));
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener.fd(), any, size) != 0 || ::listen(listener.fd(), kBacklog) != 0) return Failed("listen");
  if (::getsockname(listener.fd(), any, &size) != 0) return Failed("getsockname");
  Socket epoll(epoll_create1(EPOLL_CLOEXEC));
  Socket wake(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!epoll.open() || !wake.open()) return Failed("epoll");
  return std::unique_ptr<NullServer>(
      new NullServer(options, std::move(listener), std::move(epoll), std::move(wake), ntohs(address.sin_port)));
}

NullServer::NullServer(const Options& options, Socket listener, Socket epoll, Socket wake, int port)
    : options_(options),
      listener_(std::move(listener)),
      epoll_(std::move(epoll)),
      wake_(std::move(wake)),
      port_(port),
      scratch_(kScratchBytes, '\0') {
  Watch(epoll_, listener_.fd());
  Watch(epoll_, wake_.fd());
}

NullServer::~NullServer() = default;

Status NullServer::Run() {
  std::array<epoll_event, kEventsPerWait> events;
  while (!stop_.load()) {
    const int count = epoll_wait(epoll_.fd(), events.data(), kEventsPerWait, -1);
    if (count < 0 && errno != EINTR) return Failed("epoll_wait");
    for (int i = 0; i < count; ++i) {
      const int fd = events[static_cast<std::size_t>(i)].data.fd;
      if (fd == listener_.fd()) {
        Accept();
      } else if (const auto found = connections_.find(fd); found != connections_.end()) {
        if (!Serve(found->second)) connections_.erase(found);
      }
    }
  }
  return {};
}

void NullServer::Stop() {
  stop_.store(true);
  const std::uint64_t one = 1;
  (void)!write(wake_.fd(), &one, sizeof one);
}

void NullServer::Accept() {
  while (true) {
    Socket socket(::accept4(listener_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.open()) return;
    const int on = 1;
    ::setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const int fd = socket.fd();
    connections_.insert_or_assign(fd, Connection{.socket = std::move(socket), .pending = {}});
    Watch(epoll_, fd);
  }
}

bool NullServer::Serve(Connection& connection) {
  const ssize_t got = ::recv(connection.socket.fd(), scratch_.data(), scratch_.size(), 0);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;
  std::string_view text(scratch_.data(), static_cast<std::size_t>(got));
  std::string joined;
  if (!connection.pending.empty()) {
    joined = std::exchange(connection.pending, {});
    joined += text;
    text = joined;
  }
  for (std::size_t answers = TakeRequests(connection, text); answers > 0; --answers) {
    // So few bytes fit whole, or the client does not read and is of no use.
    if (::send(connection.socket.fd(), kAnswer.data(), kAnswer.size(), MSG_NOSIGNAL) < 0) return false;
  }
  return connection.pending.size() <= kMostHead;
}

std::size_t NullServer::TakeRequests(Connection& connection, std::string_view text) const {
  std::size_t answers = 0;
  while (!text.empty()) {
    if (connection.left == 0) {
      connection.left = RequestBytes(text);
      connection.answer = !options_.hold || text.starts_with("GET ");
    }
    if (connection.left == 0) {
      connection.pending = text;
      break;
    }
    const std::size_t taken = std::min(connection.left, text.size());
    connection.left -= taken;
    text.remove_prefix(taken);
    if (connection.left == 0 && connection.answer) ++answers;
  }
  return answers;
}

}  // namespace tandem::bench
