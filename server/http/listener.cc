#include "server/http/listener.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>
#include <utility>

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <trantor/net/Channel.h>
#include <trantor/net/EventLoop.h>

namespace tandem::http {
namespace {

constexpr int kBacklog = 4096;
constexpr int kAcceptsPerTurn = 64;
constexpr std::chrono::milliseconds kPauseWithoutDescriptors{100};

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};

UniqueFd OpenSpare() {
  return UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

std::uint16_t BoundPort(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET ? reinterpret_cast<const sockaddr_in&>(address).sin_port
                                            : reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
}

}  // namespace

Result<std::unique_ptr<Listener>> Listener::Bind(const std::string& address, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found); error != 0) {
    return Invalid("the address '{}' cannot be listened on: {}", address, ::gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, FreeAddresses> owned(found);
  UniqueFd fd(::socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (fd) ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (!fd || ::bind(fd.get(), found->ai_addr, found->ai_addrlen) != 0 || ::listen(fd.get(), kBacklog) != 0) {
    const int error = errno;
    return Fail(error == EADDRINUSE ? ErrorCode::kConflict : ErrorCode::kInvalidArgument,
                "cannot listen on {} port {}: {}", address, port, std::strerror(error));
  }
  const std::uint16_t bound = BoundPort(fd.get());
  return std::unique_ptr<Listener>(new Listener(std::move(fd), bound));
}

Listener::Listener(UniqueFd fd, std::uint16_t port) : fd_(std::move(fd)), spare_(OpenSpare()), port_(port) {}

Listener::~Listener() = default;

void Listener::Start(IoLoop& loop, OnAccept on_accept) {
  loop_ = &loop;
  on_accept_ = std::move(on_accept);
  alive_ = std::make_shared<bool>(true);
  channel_ = std::make_unique<trantor::Channel>(&loop.events(), fd_.get());
  channel_->setEventCallback([this] { AcceptSome(kAcceptsPerTurn); });
  channel_->updateEvents(EPOLLIN);
}

void Listener::Stop() {
  if (!channel_) return;
  AcceptSome(std::numeric_limits<int>::max());
  if (!channel_->isNoneEvent()) channel_->disableAll();
  channel_->remove();
  alive_.reset();
  fd_ = UniqueFd();
  // The poller's list of this turn may still name the channel.
  loop_->Post([last = std::move(channel_)] {});
}

void Listener::AcceptSome(int most) {
  for (int i = 0; i < most; ++i) {
    UniqueFd fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd) {
      on_accept_(std::move(fd));
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      if (DropOne()) continue;
      // Nothing helps at the moment: let the clients wait in the backlog instead of spinning.
      channel_->disableAll();
      loop_->events().runAfter(kPauseWithoutDescriptors, [this, alive = std::weak_ptr(alive_)] {
        if (alive.lock()) channel_->updateEvents(EPOLLIN);
      });
    }
    return;
  }
}

bool Listener::DropOne() {
  spare_ = UniqueFd();
  const bool dropped = static_cast<bool>(UniqueFd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC)));
  spare_ = OpenSpare();
  return dropped;
}

std::size_t RaiseFileLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<std::size_t>(limit.rlim_cur);
}

}  // namespace tandem::http
