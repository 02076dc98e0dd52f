#include "server/grpc/connection_acceptor.h"

#include <thread>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/base/mutex.h"

namespace tandem::grpc_front {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A socket that closes itself.
class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }

  static Socket Open() { return Socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); }
  static Socket ConnectTo(int port) {
    Socket socket = Open();
    socket.Connect(port);
    return socket;
  }
  void Connect(int port) const {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }

  // Waits until the other side closes it.
  [[nodiscard]] bool IsClosed() const {
    char byte = 0;
    return ::recv(fd_, &byte, 1, 0) <= 0;
  }

 private:
  int fd_;
};

// Keeps what is handed over.
class Owner {
 public:
  ConnectionAcceptor::Hand Hand() {
    return [this](int fd) {
      MutexLock lock(mu_);
      sockets_.emplace_back(fd);
      arrived_.NotifyAll();
    };
  }
  void WaitFor(std::size_t count) {
    MutexLock lock(mu_);
    while (sockets_.size() < count) arrived_.Wait(mu_);
  }
  void CloseAll() {
    MutexLock lock(mu_);
    sockets_.clear();
  }

 private:
  Mutex mu_;
  CondVar arrived_;
  std::vector<Socket> sockets_ GUARDED_BY(mu_);
};

TEST(ConnectionAcceptor, APortInUseIsAnErrorThatNamesTheAddress) {
  const auto first = ConnectionAcceptor::Listen("127.0.0.1", 0, 10);
  ASSERT_TRUE(first);
  const auto second = ConnectionAcceptor::Listen("127.0.0.1", (*first)->port(), 10);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message,
              AllOf(HasSubstr("127.0.0.1:" + std::to_string((*first)->port())), HasSubstr("in use")));
}

TEST(ConnectionAcceptor, AnAddressThatDoesNotExistIsNamed) {
  const auto none = ConnectionAcceptor::Listen("no.such.host.invalid", 0, 10);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("no.such.host.invalid"));
  EXPECT_FALSE(ConnectionAcceptor::Listen("127.0.0.1", 70'000, 10));
}

TEST(ConnectionAcceptor, ClosesConnectionsAboveTheLimitAndHasRoomAgainWhenOthersEnd) {
  Owner owner;
  const auto acceptor = ConnectionAcceptor::Listen("127.0.0.1", 0, 2);
  ASSERT_TRUE(acceptor);
  (*acceptor)->Start(owner.Hand());
  const Socket a = Socket::ConnectTo((*acceptor)->port());
  const Socket b = Socket::ConnectTo((*acceptor)->port());
  owner.WaitFor(2);
  EXPECT_TRUE(Socket::ConnectTo((*acceptor)->port()).IsClosed());
  owner.CloseAll();
  const Socket c = Socket::ConnectTo((*acceptor)->port());
  owner.WaitFor(1);
}

TEST(ConnectionAcceptor, GoesOnWhenDescriptorsRunOutAndComeBack) {
  Owner owner;
  const auto acceptor = ConnectionAcceptor::Listen("127.0.0.1", 0, 100);
  ASSERT_TRUE(acceptor);
  (*acceptor)->Start(owner.Hand());
  const Socket before = Socket::ConnectTo((*acceptor)->port());
  owner.WaitFor(1);

  const Socket waiting = Socket::Open();
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &usual), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = usual.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  waiting.Connect((*acceptor)->port());
  // Time for some attempts in vain; none is needed for what follows.
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &usual), 0);
  owner.WaitFor(2);
}

TEST(ConnectionAcceptor, StopsWithoutAnyConnection) {
  const auto acceptor = ConnectionAcceptor::Listen("localhost", 0, 100);
  ASSERT_TRUE(acceptor);
  (*acceptor)->Start([](int fd) { ::close(fd); });
  (*acceptor)->Stop();
}

}  // namespace
}  // namespace tandem::grpc_front
