#include "bench/null_server.h"

#include <array>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "bench/http_call.h"

namespace tandem::bench {
namespace {

using loadgen::Socket;

constexpr std::string_view kAnswerEnd = "\r\n\r\n{}";

class NullServerTest : public testing::Test {
 protected:
  void Start(const NullServer::Options& options) {
    server_ = *NullServer::Make(options);
    thread_ = std::thread([this] { EXPECT_TRUE(server_->Run()); });
  }
  ~NullServerTest() override {
    server_->Stop();
    thread_.join();
  }

  Socket Connect() {
    Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(server_->port()));
    EXPECT_EQ(::connect(socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return socket;
  }

  static void Send(const Socket& socket, std::string_view text) {
    EXPECT_EQ(::send(socket.fd(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }

  // Reads until so many answers are there.
  static std::string Read(const Socket& socket, int answers) {
    std::string text;
    for (int found = 0; found < answers;) {
      std::array<char, 4096> bytes;
      const ssize_t got = ::recv(socket.fd(), bytes.data(), bytes.size(), 0);
      if (got <= 0) break;
      text.append(bytes.data(), static_cast<std::size_t>(got));
      found = 0;
      for (std::size_t at = 0; (at = text.find(kAnswerEnd, at)) != std::string::npos; ++at) ++found;
    }
    return text;
  }

  std::unique_ptr<NullServer> server_;
  std::thread thread_;
};

TEST(RequestBytes, CountHeadAndBody) {
  EXPECT_EQ(RequestBytes("GET / HTTP/1.1\r\nHost: a\r\n"), 0U);
  EXPECT_EQ(RequestBytes("GET / HTTP/1.1\r\n\r\n"), 18U);
  EXPECT_EQ(RequestBytes("POST / HTTP/1.1\r\ncontent-LENGTH: 5\r\nX: y\r\n\r\nab"), 44U + 5U);
}

TEST_F(NullServerTest, AnswersEveryRequestOfAConnection) {
  Start({});
  EXPECT_EQ(*GetStatus(server_->port(), "/"), 200);
  const Socket socket = Connect();
  for (int i = 0; i < 3; ++i) {
    Send(socket, "POST /infer HTTP/1.1\r\nContent-Length: 4\r\n\r\nabcd");
    EXPECT_TRUE(Read(socket, 1).starts_with("HTTP/1.1 200 OK\r\n"));
  }
}

TEST_F(NullServerTest, TakesRequestsInPiecesAndSeveralAtOnce) {
  Start({});
  const Socket socket = Connect();
  Send(socket, "POST / HTTP/1.1\r\nContent-Le");
  Send(socket, "ngth: 4\r\n\r\nab");
  Send(socket, "cdGET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(Read(socket, 3).ends_with(kAnswerEnd));
}

TEST_F(NullServerTest, HoldsWhatIsNoGetWhenToldTo) {
  Start({.hold = true});
  const Socket held = Connect();
  Send(held, "POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nab");
  // Served by the one thread after the other request: that one has been taken by then.
  EXPECT_EQ(*GetStatus(server_->port(), "/"), 200);
  EXPECT_TRUE(IsIdle(held));
}

TEST_F(NullServerTest, HangsUpOnAHeadWithoutEnd) {
  Start({});
  const Socket socket = Connect();
  const std::string part(1 << 16, 'x');
  char byte = 0;
  for (int i = 0; i < 64 && ::send(socket.fd(), part.data(), part.size(), MSG_NOSIGNAL) > 0; ++i) {
  }
  EXPECT_LE(::recv(socket.fd(), &byte, 1, 0), 0);
}

}  // namespace
}  // namespace tandem::bench
