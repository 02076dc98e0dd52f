#include "server/http/direct_send.h"

#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/server/http/server_fixture.h"

namespace tandem::http {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Optional;
using ::testing::StartsWith;

class SocketPair {
 public:
  SocketPair() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds_.data()), 0); }
  ~SocketPair() {
    for (const int fd : fds_) ::close(fd);
  }
  SocketPair(const SocketPair&) = delete;
  SocketPair& operator=(const SocketPair&) = delete;

  [[nodiscard]] int server() const { return fds_[0]; }
  [[nodiscard]] std::string Received() const {
    std::string text(64 << 10, '\0');
    const ssize_t n = ::recv(fds_[1], text.data(), text.size(), MSG_DONTWAIT);
    text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return text;
  }
  // Nothing more goes in until something is read.
  void Fill() const {
    const std::string piece(4096, 'x');
    while (::send(fds_[0], piece.data(), piece.size(), MSG_DONTWAIT) > 0) continue;
  }

 private:
  std::array<int, 2> fds_{};
};

TEST(DirectSend, WritesOneWholeAnswerWhenAllowed) {
  const SocketPair sockets;
  DirectSend direct;
  direct.Allow(sockets.server(), {.date = "today"});
  EXPECT_TRUE(direct.Send(JsonResponse(200, "{}")));
  EXPECT_THAT(sockets.Received(), AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("Date: today\r\n"), EndsWith("\r\n{}")));
  EXPECT_FALSE(direct.Send(JsonResponse(200, "{}")));
  EXPECT_EQ(sockets.Received(), "");
  EXPECT_FALSE(direct.Forbid());
}

TEST(DirectSend, AnAnswerThatWasTakenNoteOfIsForgotten) {
  const SocketPair sockets;
  DirectSend direct;
  direct.Allow(sockets.server(), {});
  EXPECT_TRUE(direct.Send(JsonResponse(200, "{}")));
  EXPECT_THAT(direct.TakeSent(), Optional(AllOf(Field(&DirectSend::Sent::bytes, sockets.Received().size()),
                                                Field(&DirectSend::Sent::rest, ""))));
  EXPECT_EQ(direct.TakeSent(), std::nullopt);
  // The next request was not allowed to be answered so.
  EXPECT_TRUE(direct.Forbid());
}

TEST(DirectSend, SaysThatAnAnswerHasBegunUntilItIsTakenNoteOf) {
  const SocketPair sockets;
  DirectSend direct;
  direct.Allow(sockets.server(), {});
  EXPECT_FALSE(direct.begun());
  EXPECT_TRUE(direct.Send(JsonResponse(200, "{}")));
  EXPECT_TRUE(direct.begun());
  EXPECT_NE(direct.TakeSent(), std::nullopt);
  EXPECT_FALSE(direct.begun());
}

TEST(DirectSend, WritesNothingBeforeItIsAllowedOrOnceItIsForbidden) {
  const SocketPair sockets;
  DirectSend direct;
  EXPECT_FALSE(direct.Send(JsonResponse(200, "{}")));
  direct.Allow(sockets.server(), {});
  EXPECT_TRUE(direct.Forbid());
  EXPECT_FALSE(direct.Send(JsonResponse(200, "{}")));
  EXPECT_EQ(sockets.Received(), "");
}

TEST(DirectSend, LeavesLargeAnswersToTheLoop) {
  const SocketPair sockets;
  DirectSend direct;
  direct.Allow(sockets.server(), {});
  EXPECT_FALSE(direct.Send(JsonResponse(200, std::string(kCopyLimit + 1, ' '))));
  EXPECT_TRUE(direct.Send(JsonResponse(200, "{}")));
}

TEST(DirectSend, GivesBackWhatTheSocketDoesNotTake) {
  const SocketPair sockets;
  sockets.Fill();
  DirectSend direct;
  direct.Allow(sockets.server(), {});
  EXPECT_TRUE(direct.Send(JsonResponse(200, "{}")));
  EXPECT_THAT(direct.TakeSent(),
              Optional(AllOf(Field(&DirectSend::Sent::bytes, 0),
                             Field(&DirectSend::Sent::rest, AllOf(StartsWith("HTTP/1.1 200"), EndsWith("\r\n{}"))))));
}

// Answers every request from threads of its own, as workers do.
class AnsweredElsewhere : public ServerFixture {
 protected:
  AnsweredElsewhere() {
    for (int i = 0; i < 2; ++i) {
      workers_.emplace_back([this](const std::stop_token& stop) { Work(stop); });
    }
  }

  void Work(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      std::shared_ptr<Exchange> exchange;
      {
        MutexLock lock(mu_);
        if (kept_.empty()) {
          arrived_.WaitFor(mu_, std::chrono::milliseconds(5));
          continue;
        }
        exchange = std::move(kept_.front());
        kept_.erase(kept_.begin());
      }
      Response response;
      response.parts.push_back(exchange->request().body);
      exchange->Respond(std::move(response));
    }
  }

  std::vector<std::jthread> workers_;
};

TEST_F(AnsweredElsewhere, EveryClientGetsItsOwn) {
  ServerOptions options = Options(clock_);
  options.io_threads = 2;
  Start(std::move(options));
  std::vector<std::thread> clients;
  for (int c = 0; c < 8; ++c) {
    clients.emplace_back([&, c] {
      RawClient client(server_->port());
      for (int i = 0; i < 50; ++i) {
        const std::string body = std::to_string(c) + "/" + std::to_string(i);
        ASSERT_EQ(client.Ask(Post("/keep", body)).body, body);
      }
    });
  }
  for (std::thread& client : clients) client.join();
}

TEST_F(AnsweredElsewhere, PipelinedRequestsKeepTheirOrderThoughTheReaderIsSlow) {
  Start();
  RawClient client(server_->port(), 4096);
  constexpr int kRequests = 400;
  const std::string filler(8 << 10, '.');
  std::thread sender([&] {
    for (int i = 0; i < kRequests; ++i) client.Send(Post("/keep", std::to_string(i) + filler));
  });
  for (int i = 0; i < kRequests; ++i) ASSERT_EQ(client.Read().body, std::to_string(i) + filler);
  sender.join();
}

TEST_F(AnsweredElsewhere, AClientThatClosesItsSideGetsAllItAskedFor) {
  Start();
  const std::string filler(8 << 10, '.');
  for (int round = 0; round < 30; ++round) {
    RawClient client(server_->port(), 4096);
    constexpr int kRequests = 12;
    std::string all;
    for (int i = 0; i < kRequests; ++i) all += Post("/keep", std::to_string(i) + filler);
    std::thread sender([&] {
      client.Send(all);
      client.HalfClose();
    });
    for (int i = 0; i < kRequests; ++i) {
      RawAnswer answer = client.Read();
      if (answer.status == 100) answer = client.Read();  // Asked whether it is still there.
      ASSERT_EQ(answer.body, std::to_string(i) + filler);
    }
    sender.join();
  }
}

// The next request comes while the thread that answered may still be busy with the answer: its head asks for more.
TEST_F(AnsweredElsewhere, WhatIsSaidInBetweenComesBehindTheAnswer) {
  Start();
  RawClient client(server_->port());
  for (int i = 0; i < 300; ++i) {
    const std::string body = std::to_string(i);
    ASSERT_EQ(client.Ask(Post("/keep", body)).body, body);
    client.Send("POST /keep HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n");
    ASSERT_EQ(client.Read().status, 100);
    client.Send("x");
    ASSERT_EQ(client.Read().body, "x");
  }
}

// A descriptor that was closed and opened again for another client must never get the first one's answer.
TEST_F(AnsweredElsewhere, ClientsThatLeaveCauseNoMixUp) {
  Start();
  std::atomic<bool> stop{false};
  std::thread leaving([&] {
    while (!stop) {
      RawClient client(server_->port());
      client.Send(Post("/keep", "of one that left"));
    }
  });
  for (int i = 0; i < 300; ++i) {
    RawClient client(server_->port());
    for (int k = 0; k < 3; ++k) {
      const std::string body = std::to_string(i) + "/" + std::to_string(k);
      ASSERT_EQ(client.Ask(Post("/keep", body)).body, body);
    }
  }
  stop = true;
  leaving.join();
  EXPECT_TRUE(EventuallyConnections(0));
}

TEST_F(AnsweredElsewhere, AnAnswerWhileDrainingEndsItsConnection) {
  Start();
  RawClient client(server_->port());
  EXPECT_EQ(client.Ask(Post("/keep", "first")).body, "first");
  workers_.clear();
  client.Send(Post("/keep", "last"));
  const auto exchange = NextKept();
  ASSERT_TRUE(exchange);
  std::thread drain([&] { EXPECT_TRUE(server_->Drain(std::chrono::seconds(10))); });
  Response response;
  response.body = "last";
  exchange->Respond(std::move(response));
  EXPECT_EQ(client.Read().body, "last");
  client.Close();
  drain.join();
}

}  // namespace
}  // namespace tandem::http
