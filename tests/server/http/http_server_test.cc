#include "server/http/http_server.h"

#include <future>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/wire/compression.h"
#include "tests/server/http/server_fixture.h"

namespace tandem::http {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using namespace std::chrono_literals;

class HttpServerTest : public ServerFixture {
 protected:
  void Handle(std::shared_ptr<Exchange> exchange) override {
    const std::string_view path = exchange->request().head.path();
    if (path == "/throw") throw std::runtime_error("no");
    if (path == "/no-memory") throw std::bad_alloc();
    if (path == "/unpack") {
      const Bytes packed = exchange->TakeBody();
      auto plain = Inflate(packed.view, "gzip", std::size_t{1} << 30, exchange->request().budget);
      return exchange->Respond(plain ? JsonResponse(200, std::to_string(plain->size())) : ErrorResponse(plain.error()));
    }
    if (path == "/drop") return;
    ServerFixture::Handle(std::move(exchange));
  }
};

TEST_F(HttpServerTest, AnswersRequestAfterRequestOnOneConnection) {
  Start();
  RawClient client(server_->port());
  for (int i = 0; i < 3; ++i) {
    const RawAnswer answer = client.Ask(Post("/a", "body"));
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, "/abody");
    EXPECT_THAT(answer.head, HasSubstr("Date: "));
  }
  EXPECT_EQ(server_->connections(), 1u);
  EXPECT_EQ(server_->requests(), 3u);
}

TEST_F(HttpServerTest, AnswersWhetherItSleepsBetweenRequestsOrNot) {
  ServerOptions options = Options(clock_);
  options.poll_window = 2ms;
  Start(std::move(options));
  RawClient client(server_->port());
  for (int i = 0; i < 200; ++i) {
    if (i % 50 == 0) std::this_thread::sleep_for(5ms);
    if (i % 7 == 0) {
      client.Send(Get("/keep"));
      const auto kept = NextKept();
      ASSERT_TRUE(kept);
      kept->Respond(ErrorResponse(418, "kept"));
      EXPECT_EQ(client.Read().status, 418);
    } else {
      EXPECT_EQ(client.Ask(Post("/a", "body")).body, "/abody");
    }
  }
  EXPECT_TRUE(server_->Drain(10s));
}

TEST_F(HttpServerTest, TellsTheHandlerWhenTheRequestCame) {
  Start();
  RawClient client(server_->port());
  client.Send(Get("/keep"));
  const auto exchange = NextKept();
  ASSERT_TRUE(exchange);
  EXPECT_EQ(exchange->request().arrival, clock_.Now());
}

TEST_F(HttpServerTest, AnswersPipelinedRequestsInOrder) {
  Start();
  RawClient client(server_->port());
  client.Send(Get("/keep") + Get("/1") + Post("/keep", "x") + Get("/2"));
  for (int i = 0; i < 2; ++i) {
    std::thread([exchange = NextKept(), i] {
      exchange->Respond(JsonResponse(200, "kept " + std::to_string(i)));
    }).join();
    EXPECT_EQ(client.Read().body, "kept " + std::to_string(i));
    EXPECT_EQ(client.Read().body, "/" + std::to_string(i + 1));
  }
}

TEST_F(HttpServerTest, ThousandsOfPipelinedRequestsWaitForTheirReader) {
  Start();
  RawClient client(server_->port());
  constexpr int kRequests = 5000;
  std::thread sender([&] {
    std::string text;
    for (int i = 0; i < kRequests; ++i) text += Get("/" + std::to_string(i));
    client.Send(text);
  });
  for (int i = 0; i < kRequests; ++i) ASSERT_EQ(client.Read().body, "/" + std::to_string(i));
  sender.join();
}

TEST_F(HttpServerTest, CarriesLargeBodiesBothWaysUnchanged) {
  Start();
  std::string body(5'000'000, '\0');
  for (std::size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>(i * 2654435761u >> 13);
  RawClient client(server_->port());
  for (int i = 0; i < 2; ++i) {
    std::thread sender([&] { client.Send(Post("/big", body, "Inference-Header-Content-Length: 77\r\n")); });
    const RawAnswer answer = client.Read();
    sender.join();
    ASSERT_EQ(answer.body.size(), body.size() + 4);
    EXPECT_TRUE(answer.body.ends_with(body));
  }
}

TEST_F(HttpServerTest, HeadIsAnsweredAsGetWithoutContent) {
  Start();
  RawClient client(server_->port());
  client.Send("HEAD /abc HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.Read(true).head, HasSubstr("Content-Length: 4\r\n"));
  EXPECT_EQ(client.Ask(Get("/next")).body, "/next");
}

TEST_F(HttpServerTest, GivesTheGoAheadBeforeTheBody) {
  Start();
  RawClient client(server_->port());
  client.Send("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.Read().status, 100);
  EXPECT_EQ(client.Ask("xyz").body, "/axyz");
}

TEST_F(HttpServerTest, ClosesWhenTheClientAsksForIt) {
  Start();
  RawClient client(server_->port());
  client.Send(Get("/a", "Connection: close\r\n"));
  const std::string all = client.ReadToEnd();
  EXPECT_THAT(all, HasSubstr("Connection: close\r\n"));
  EXPECT_TRUE(all.ends_with("/a"));
  client.Close();
  EXPECT_TRUE(EventuallyConnections(0));
}

TEST_F(HttpServerTest, AnOldClientGetsItsAnswerAndTheClose) {
  Start();
  RawClient client(server_->port());
  client.Send("GET /a HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(client.ReadToEnd().ends_with("/a"));
}

TEST_F(HttpServerTest, AForgottenOrFailedRequestIsA500) {
  Start();
  RawClient client(server_->port());
  EXPECT_EQ(client.Ask(Get("/drop")).status, 500);
  EXPECT_EQ(client.Ask(Get("/throw")).status, 500);
  EXPECT_EQ(client.Ask(Get("/fine")).status, 200);
}

TEST_F(HttpServerTest, AHandlerWithoutMemoryIsA503) {
  Start();
  RawClient client(server_->port());
  const RawAnswer answer = client.Ask(Get("/no-memory"));
  EXPECT_EQ(answer.status, 503);
  EXPECT_THAT(answer.head, HasSubstr("Retry-After"));
  EXPECT_EQ(client.Ask(Get("/fine")).status, 200);
}

TEST_F(HttpServerTest, ABodyThatIsTakenLivesNoLongerThanItsTaker) {
  Start();
  RawClient client(server_->port());
  client.Send(Post("/keep", std::string(100'000, 'x')));
  const auto exchange = NextKept();
  ASSERT_TRUE(exchange);
  const std::shared_ptr<ByteBudget> budget = exchange->request().budget;
  EXPECT_GE(budget->used(), 100'000u);
  EXPECT_EQ(exchange->TakeBody().size(), 100'000u);
  EXPECT_EQ(budget->used(), 0u);
  EXPECT_EQ(exchange->request().body.size(), 0u);
}

TEST_F(HttpServerTest, WhatIsUnpackedCountsWithTheBodies) {
  ServerOptions options = Options(clock_);
  options.max_body_total = 1'000'000;
  Start(std::move(options));
  const auto packed = [](std::size_t size) {
    const std::string text(size, 'x');
    const std::span<const std::byte> parts[] = {std::as_bytes(std::span(text))};
    return Deflate(parts, "gzip").value();
  };
  RawClient client(server_->port());
  for (int i = 0; i < 5; ++i) {
    const RawAnswer refused = client.Ask(Post("/unpack", packed(5'000'000)));
    EXPECT_EQ(refused.status, 503);
    EXPECT_THAT(refused.head, HasSubstr("Retry-After"));
    EXPECT_EQ(client.Ask(Post("/unpack", packed(300'000))).body, "300000");
  }
}

TEST_F(HttpServerTest, OnlyTheFirstAnswerCounts) {
  Start();
  RawClient client(server_->port());
  client.Send(Get("/keep") + Get("/next"));
  const auto exchange = NextKept();
  exchange->Respond(JsonResponse(200, "first"));
  exchange->Respond(JsonResponse(200, "second"));
  EXPECT_EQ(client.Read().body, "first");
  EXPECT_EQ(client.Read().body, "/next");
}

TEST_F(HttpServerTest, RefusesEarlyWithoutReadingTheBody) {
  ServerOptions options = Options(clock_);
  options.refuse_early = [](const RequestHead& head) -> std::optional<Response> {
    if (head.HasHeader("authorization")) return std::nullopt;
    return ErrorResponse(401, "no token");
  };
  Start(std::move(options));
  RawClient client(server_->port());
  const RawAnswer answer = client.Ask("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n");
  EXPECT_EQ(answer.status, 401);
  EXPECT_THAT(answer.head, HasSubstr("Connection: close"));
  EXPECT_EQ(RawClient(server_->port()).Ask(Post("/", "x", "Authorization: Bearer t\r\n")).status, 200);
}

TEST_F(HttpServerTest, StreamsPiecesAndGoesOn) {
  Start();
  RawClient client(server_->port());
  client.Send(Get("/keep"));
  const auto exchange = NextKept();
  Response head;
  head.content_type = "text/event-stream";
  exchange->BeginStream(head);
  const RawAnswer answer = client.Read();
  EXPECT_THAT(answer.head, HasSubstr("Transfer-Encoding: chunked\r\n"));
  EXPECT_THAT(answer.head, Not(HasSubstr("Content-Length")));
  exchange->Write("data: 1\n\n");
  exchange->Write("");
  exchange->Write("data: twenty-two\n\n");
  exchange->End();
  exchange->Write("too late");
  client.Send(Get("/next", "Connection: close\r\n"));
  const std::string rest = client.ReadToEnd();
  EXPECT_THAT(rest, StartsWith("9\r\ndata: 1\n\n\r\n12\r\ndata: twenty-two\n\n\r\n0\r\n\r\nHTTP/1.1 200 OK"));
}

TEST_F(HttpServerTest, StreamsToAnOldClientUpToTheClose) {
  Start();
  RawClient client(server_->port());
  client.Send("GET /keep HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const auto exchange = NextKept();
  exchange->BeginStream({});
  exchange->Write("piece");
  exchange->End();
  const std::string all = client.ReadToEnd();
  EXPECT_THAT(all, Not(HasSubstr("chunked")));
  EXPECT_TRUE(all.ends_with("\r\n\r\npiece"));
}

TEST_F(HttpServerTest, AStreamThatIsAbandonedIsCutNotEnded) {
  Start();
  RawClient client(server_->port());
  client.Send(Get("/keep"));
  auto exchange = NextKept();
  exchange->BeginStream({});
  exchange->Write("piece");
  exchange.reset();
  EXPECT_TRUE(client.ReadToEnd().ends_with("5\r\npiece\r\n"));
}

TEST_F(HttpServerTest, AStreamTellsWhatItsReaderHasNotTakenAndIsCutInTheEnd) {
  ServerOptions options = Options(clock_);
  options.max_stream_pending = 20'000'000;
  Start(std::move(options));
  RawClient client(server_->port(), 4096);
  client.Send(Get("/keep"));
  const auto exchange = NextKept();
  exchange->BeginStream({});
  // The kernel takes a few megabytes for itself.
  for (int i = 0; i < 15; ++i) exchange->Write(std::string(1'000'000, 'x'));
  EXPECT_GT(exchange->PendingBytes(), 1'000'000u);
  EXPECT_FALSE(exchange->cancel()->cancelled());
  for (int i = 0; i < 25; ++i) exchange->Write(std::string(1'000'000, 'x'));
  EXPECT_TRUE(Eventually([&] { return exchange->cancel()->cancelled(); }));
  EXPECT_TRUE(EventuallyConnections(0));
}

TEST_F(HttpServerTest, DrainAnswersWhatIsUnderWayAndClosesTheRest) {
  Start();
  RawClient idle(server_->port());
  EXPECT_EQ(idle.Ask(Get("/a")).status, 200);
  RawClient busy(server_->port());
  busy.Send(Get("/keep"));
  const auto exchange = NextKept();
  auto drained = std::async(std::launch::async, [&] { return server_->Drain(10s); });
  EXPECT_EQ(idle.ReadToEnd(), "");
  exchange->Respond(JsonResponse(200, "late"));
  const RawAnswer answer = busy.Read();
  EXPECT_EQ(answer.body, "late");
  EXPECT_THAT(answer.head, HasSubstr("Connection: close"));
  busy.Close();
  EXPECT_TRUE(drained.get());
}

TEST_F(HttpServerTest, DrainGivesUpWhenItsPatienceEnds) {
  Start();
  RawClient busy(server_->port());
  busy.Send(Get("/keep"));
  const auto exchange = NextKept();
  auto drained = std::async(std::launch::async, [&] { return server_->Drain(1s); });
  for (int i = 0; i < 1000 && drained.wait_for(1ms) != std::future_status::ready; ++i) clock_.Advance(1s);
  EXPECT_FALSE(drained.get());
  server_->Stop();
  EXPECT_TRUE(exchange->cancel()->cancelled());
}

TEST_F(HttpServerTest, AnExchangeMayOutliveItsServer) {
  Start();
  RawClient client(server_->port());
  client.Send(Get("/keep"));
  const auto exchange = NextKept();
  server_.reset();
  EXPECT_TRUE(exchange->cancel()->cancelled());
  exchange->Post([] {});
  exchange->Respond(JsonResponse(200, "nobody listens"));
  EXPECT_EQ(client.ReadToEnd(), "");
}

TEST_F(HttpServerTest, TwoServersShareLoops) {
  ServerOptions options = Options(clock_);
  options.loops = std::make_shared<IoLoops>(2);
  Start(options);
  auto second =
      HttpServer::Start(options, [](std::shared_ptr<Exchange> e) { e->Respond(JsonResponse(200, "second")); });
  ASSERT_TRUE(second);
  EXPECT_NE((*second)->port(), server_->port());
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(RawClient(server_->port()).Ask(Get("/a")).body, "/a");
    EXPECT_EQ(RawClient((*second)->port()).Ask(Get("/a")).body, "second");
  }
  server_.reset();
  EXPECT_EQ(RawClient((*second)->port()).Ask(Get("/a")).body, "second");
}

TEST_F(HttpServerTest, APortThatIsTakenIsAnErrorThatNamesIt) {
  Start();
  ServerOptions options = Options(clock_);
  options.port = server_->port();
  const auto second = HttpServer::Start(options, [](std::shared_ptr<Exchange>) {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
  EXPECT_THAT(second.error().message, HasSubstr(std::to_string(options.port)));
  options.address = "no such address";
  const auto third = HttpServer::Start(options, [](std::shared_ptr<Exchange>) {});
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, ErrorCode::kInvalidArgument);
}

TEST_F(HttpServerTest, APortIsFreeAgainOnceTheServerHasStopped) {
  Start();
  ServerOptions options = Options(clock_);
  options.port = server_->port();
  EXPECT_EQ(RawClient(options.port).Ask(Get("/a")).status, 200);
  server_.reset();
  Start(options);
  EXPECT_EQ(RawClient(options.port).Ask(Get("/b")).body, "/b");
}

}  // namespace
}  // namespace tandem::http
