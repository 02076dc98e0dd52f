#include "server/grpc/connection_acceptor.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/base/thread_name.h"

namespace tandem::grpc_front {
namespace {

constexpr int kPauseWithoutDescriptorsMs = 20;

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};

int PortOf(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return address.ss_family == AF_INET6 ? ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port)
                                       : ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

// The listening socket, or -1 with errno set.
int ListenOn(const addrinfo& address) {
  const int fd = ::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  // Accepted sockets inherit it.
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (::bind(fd, address.ai_addr, address.ai_addrlen) == 0 && ::listen(fd, SOMAXCONN) == 0) return fd;
  const int reason = errno;
  ::close(fd);
  errno = reason;
  return -1;
}

bool LacksResources(int reason) {
  return reason == EMFILE || reason == ENFILE || reason == ENOBUFS || reason == ENOMEM;
}

}  // namespace

Result<std::unique_ptr<ConnectionAcceptor>> ConnectionAcceptor::Listen(const std::string& address, int port,
                                                                       int max_connections) {
  if (port < 0 || port > 65'535) return Invalid("the gRPC port must be from 0 to 65535, not {}", port);
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found); error != 0) {
    return Invalid("the gRPC address '{}' is not known: {}", address, ::gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, FreeAddresses> addresses(found);
  int listener = -1;
  for (const addrinfo* a = addresses.get(); a != nullptr && listener < 0; a = a->ai_next) listener = ListenOn(*a);
  if (listener < 0) {
    const int error = errno;
    return Fail(error == EADDRINUSE ? ErrorCode::kConflict : ErrorCode::kInvalidArgument,
                "cannot listen for gRPC on {}:{}: {}", address, port, std::strerror(error));
  }
  const int stop_event = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (stop_event < 0) {
    ::close(listener);
    return Fail(ErrorCode::kInternal, "cannot listen for gRPC on {}:{}: {}", address, port, std::strerror(errno));
  }
  return std::unique_ptr<ConnectionAcceptor>(
      new ConnectionAcceptor(listener, stop_event, PortOf(listener), max_connections));
}

ConnectionAcceptor::ConnectionAcceptor(int listener, int stop_event, int port, int max_connections)
    : listener_(listener), stop_event_(stop_event), port_(port), max_connections_(max_connections) {}

ConnectionAcceptor::~ConnectionAcceptor() {
  Stop();
}

void ConnectionAcceptor::Start(Hand hand) {
  hand_ = std::move(hand);
  thread_ = std::thread([this] { Run(); });
}

void ConnectionAcceptor::Stop() {
  if (listener_ < 0) return;
  ::eventfd_write(stop_event_, 1);
  if (thread_.joinable()) thread_.join();
  ::close(listener_);
  ::close(stop_event_);
  listener_ = -1;
  stop_event_ = -1;
}

void ConnectionAcceptor::Run() {
  NameThread("grpc-accept");
  while (true) {
    pollfd ready[] = {{.fd = listener_, .events = POLLIN, .revents = 0},
                      {.fd = stop_event_, .events = POLLIN, .revents = 0}};
    if (::poll(ready, 2, -1) < 0 && errno != EINTR) WaitForStop(kPauseWithoutDescriptorsMs);
    if (ready[1].revents != 0) return;
    if (ready[0].revents != 0 && !AcceptOne()) WaitForStop(kPauseWithoutDescriptorsMs);
  }
}

bool ConnectionAcceptor::AcceptOne() {
  const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) return !LacksResources(errno);
  struct stat info{};
  if (!HasRoom() || ::fstat(fd, &info) != 0) {
    ::close(fd);
    return true;
  }
  handed_.push_back({.fd = fd, .inode = info.st_ino});
  hand_(fd);
  return true;
}

bool ConnectionAcceptor::HasRoom() {
  const auto limit = static_cast<std::size_t>(max_connections_);
  if (handed_.size() < limit) return true;
  std::erase_if(handed_, [](const Handed& handed) {
    struct stat info{};
    return ::fstat(handed.fd, &info) != 0 || info.st_ino != handed.inode;
  });
  return handed_.size() < limit;
}

void ConnectionAcceptor::WaitForStop(int milliseconds) const {
  pollfd stop{.fd = stop_event_, .events = POLLIN, .revents = 0};
  ::poll(&stop, 1, milliseconds);
}

}  // namespace tandem::grpc_front
