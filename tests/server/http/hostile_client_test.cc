// What a stranger can send, or fail to send, to a real server.

#include <filesystem>
#include <format>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/http/http_server.h"
#include "tests/server/http/server_fixture.h"

namespace tandem::http {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace std::chrono_literals;

class HostileClient : public ServerFixture {};

std::size_t EntriesOf(const char* folder) {
  const std::filesystem::directory_iterator entries(folder);
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

struct BadRequest {
  std::string text;
  int status;
};

const std::vector<BadRequest>& BadRequests() {
  static const std::string chunked = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  static const std::vector<BadRequest> requests = {
      {chunked + "2\r\nab\r\n-2\r\nX", 400},
      {chunked + "0x2\r\nab\r\n", 400},
      {chunked + "ffffffffffffffff\r\nab\r\n", 413},
      {Get("/", "Content-Length: 10abc\r\n"), 400},
      {Get("/", "Content-Length: -1\r\n"), 400},
      {Get("/", "Content-Length: 999999999999\r\n"), 413},
      {Get("/", "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n") + "0\r\n\r\n", 400},
      {Get("/", "Transfer-Encoding: gzip\r\n"), 400},
      {Get("/", "Expect: magic\r\n"), 417},
      {Get("/", "A: " + std::string(40'000, 'a') + "\r\n"), 431},
      {Get("/" + std::string(20'000, 'a')), 414},
      {"GET / HTTP/3.0\r\n\r\n", 505},
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {Get("/", "Content-Encoding: gzip\r\nContent-Encoding: gzip\r\n"), 400},
      {std::string("GET /\0 HTTP/1.1\r\n\r\n", 19), 400},
      {"\x16\x03\x01\x02\x00\x01\x00", 400},
      {"complete nonsense\r\n\r\n", 400},
  };
  return requests;
}

TEST_F(HostileClient, GetsAReasonAndTheCloseForEveryBadRequest) {
  Start();
  for (const BadRequest& request : BadRequests()) {
    RawClient client(server_->port());
    const RawAnswer answer = client.Ask(request.text);
    EXPECT_EQ(answer.status, request.status) << request.text.substr(0, 100);
    EXPECT_THAT(answer.head, HasSubstr("Connection: close")) << request.text.substr(0, 100);
    EXPECT_THAT(answer.body, StartsWith("{\"error\":\"")) << request.text.substr(0, 100);
    EXPECT_EQ(client.ReadToEnd(), "");
    EXPECT_EQ(RawClient(server_->port()).Ask(Get("/next")).body, "/next");
  }
}

TEST_F(HostileClient, ThousandsOfBadRequestsLeaveNothingBehind) {
  Start();
  EXPECT_EQ(RawClient(server_->port()).Ask(Get("/")).status, 200);
  ASSERT_TRUE(EventuallyConnections(0));
  const std::size_t files = EntriesOf("/proc/self/fd"), threads = EntriesOf("/proc/self/task");
  for (int i = 0; i < 3000; ++i) {
    const BadRequest& request = BadRequests()[static_cast<std::size_t>(i) % BadRequests().size()];
    RawClient client(server_->port());
    ASSERT_EQ(client.Ask(request.text).status, request.status);
  }
  ASSERT_TRUE(EventuallyConnections(0));
  EXPECT_EQ(EntriesOf("/proc/self/fd"), files);
  EXPECT_EQ(EntriesOf("/proc/self/task"), threads);
}

TEST_F(HostileClient, ARequestBehindABadOneIsNotRead) {
  Start();
  RawClient client(server_->port());
  client.Send(Get("/", "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n") + "0\r\n\r\n" + Get("/smuggled"));
  EXPECT_EQ(client.Read().status, 400);
  EXPECT_EQ(client.ReadToEnd(), "");
  EXPECT_EQ(server_->requests(), 0u);
}

TEST_F(HostileClient, SeesTheRefusalOfABodyThatItKeepsSending) {
  Start();
  RawClient client(server_->port());
  client.Send(Get("/", "Content-Length: 999999999999\r\n"));
  for (int i = 0; i < 50; ++i) client.Send(std::string(1'000'000, 'x'));
  EXPECT_EQ(client.Read().status, 413);
}

TEST_F(HostileClient, IsCutOffWhenItLingersAfterARefusal) {
  Start();
  RawClient client(server_->port());
  EXPECT_EQ(client.Ask("nonsense\r\n").status, 400);
  EXPECT_EQ(server_->connections(), 1u);
  EXPECT_TRUE(Eventually([&] {
    clock_.Advance(6s);
    return server_->connections() == 0;
  }));
}

TEST_F(HostileClient, DrippingAHeadByteByByteEndsIn408) {
  ServerOptions options = Options(clock_);
  options.timeouts.idle = 1000h;
  Start(std::move(options));
  RawClient client(server_->port());
  client.Send("GET / HTTP/1.1\r\nX: ");
  for (int i = 0; i < 1000 && !client.Readable(2); ++i) {
    client.Send("a");
    clock_.Advance(1s);
  }
  EXPECT_EQ(client.Read().status, 408);
}

TEST_F(HostileClient, DrippingABodyEndsIn408) {
  Start();
  RawClient client(server_->port());
  client.Send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");
  for (int i = 0; i < 1000 && !client.Readable(2); ++i) {
    client.Send("0123456789");
    clock_.Advance(1s);
  }
  EXPECT_EQ(client.Read().status, 408);
}

TEST_F(HostileClient, AnUploadThatStallsOrDripsAfterAFastStartEndsIn408) {
  Start();
  for (const std::string drip : {"", "0123456789"}) {
    RawClient client(server_->port());
    client.Send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n" + std::string(5'000'000, 'x'));
    std::this_thread::sleep_for(20ms);
    const MonotonicTime begun = clock_.Now();
    for (int i = 0; i < 1000 && !client.Readable(2); ++i) {
      client.Send(drip);
      clock_.Advance(1s);
    }
    EXPECT_EQ(client.Read().status, 408);
    // At the stated rate the fast start would have paid for an hour.
    EXPECT_LT(clock_.Now() - begun, 1000s);
  }
}

TEST_F(HostileClient, ASteadySlowUploadIsLetThrough) {
  Start();
  RawClient client(server_->port());
  client.Send("POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");
  for (int i = 0; i < 250; ++i) {
    client.Send(std::string(400, 'x'));
    std::this_thread::sleep_for(3ms);
    clock_.Advance(100ms);
  }
  EXPECT_EQ(client.Read().status, 200);
}

TEST_F(HostileClient, AnIdleConnectionIsClosedInTheEnd) {
  Start();
  RawClient client(server_->port());
  EXPECT_EQ(client.Ask(Get("/a")).status, 200);
  clock_.Advance(60s);
  EXPECT_EQ(client.Ask(Get("/b")).status, 200);
  PassTimeUntilReadable(client, 76s);
  EXPECT_EQ(client.ReadToEnd(), "");
}

TEST_F(HostileClient, ARequestUnderWayIsNeverTimedOut) {
  Start();
  RawClient client(server_->port());
  client.Send(Get("/keep"));
  const auto exchange = NextKept();
  clock_.Advance(24h);
  RawClient other(server_->port());
  EXPECT_EQ(other.Ask(Get("/a")).status, 200);
  exchange->Respond(JsonResponse(200, "late"));
  EXPECT_EQ(client.Read().body, "late");
}

TEST_F(HostileClient, VanishingAmidAnUploadFreesEverything) {
  Start();
  for (const bool reset : {false, true}) {
    RawClient client(server_->port());
    client.Send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000\r\n\r\n" + std::string(2'000'000, 'x'));
    EXPECT_TRUE(EventuallyConnections(1));
    reset ? client.Reset() : client.Close();
    EXPECT_TRUE(EventuallyConnections(0));
  }
  EXPECT_EQ(server_->requests(), 0u);
}

TEST_F(HostileClient, VanishingWhileItsRequestIsHandledCancelsTheWork) {
  Start();
  for (const bool reset : {false, true}) {
    RawClient client(server_->port());
    client.Send(Get("/keep"));
    const auto exchange = NextKept();
    ASSERT_TRUE(exchange);
    EXPECT_FALSE(exchange->cancel()->cancelled());
    reset ? client.Reset() : client.Close();
    EXPECT_TRUE(Eventually([&] { return exchange->cancel()->cancelled(); }));
    exchange->Respond(JsonResponse(200, "nobody listens"));
    EXPECT_TRUE(EventuallyConnections(0));
  }
}

TEST_F(HostileClient, VanishingBehindPipelinedRequestsCancelsTheWork) {
  Start();
  RawClient client(server_->port());
  client.Send(Get("/keep") + Get("/never"));
  const auto exchange = NextKept();
  client.Close();
  EXPECT_TRUE(Eventually([&] { return exchange->cancel()->cancelled(); }));
  exchange->Respond(JsonResponse(200, "nobody listens"));
  EXPECT_TRUE(EventuallyConnections(0));
}

TEST_F(HostileClient, ClosingOnlyItsSendingSideIsAskedWhetherItIsThereAndGetsItsAnswers) {
  Start();
  for (const std::string behind : {"", "/now", "/keep"}) {
    RawClient client(server_->port());
    client.Send(Get("/keep") + (behind.empty() ? "" : Get(behind)));
    const auto exchange = NextKept();
    client.HalfClose();
    EXPECT_EQ(client.Read().status, 100);
    EXPECT_FALSE(exchange->cancel()->cancelled());
    exchange->Respond(JsonResponse(200, "first"));
    EXPECT_EQ(client.Read().body, "first");
    if (behind == "/keep") {
      NextKept()->Respond(JsonResponse(200, "second"));
      EXPECT_EQ(client.Read().status, 100);
    }
    EXPECT_EQ(client.Read().status, behind.empty() ? 0 : 200);
    EXPECT_EQ(client.ReadToEnd(), "");
    EXPECT_TRUE(EventuallyConnections(0));
  }
}

TEST_F(HostileClient, VanishingAfterItClosedItsSendingSideCancelsTheWork) {
  Start();
  for (const bool reset : {false, true}) {
    RawClient client(server_->port());
    client.Send(Get("/keep"));
    const auto exchange = NextKept();
    client.HalfClose();
    EXPECT_EQ(client.Read().status, 100);
    EXPECT_FALSE(exchange->cancel()->cancelled());
    // What a full close leaves unread resets the connection at once; else the answer does.
    if (reset) {
      client.Reset();
      EXPECT_TRUE(Eventually([&] { return exchange->cancel()->cancelled(); }));
    } else {
      client.Close();
      exchange->Respond(JsonResponse(200, "nobody listens"));
    }
    EXPECT_TRUE(EventuallyConnections(0));
  }
}

TEST_F(HostileClient, AnOldClientThatClosesItsSendingSideHasGone) {
  Start();
  RawClient client(server_->port());
  client.Send("GET /keep HTTP/1.0\r\n\r\n");
  const auto exchange = NextKept();
  client.HalfClose();
  EXPECT_TRUE(Eventually([&] { return exchange->cancel()->cancelled(); }));
}

TEST_F(HostileClient, ATruncatedRequestIsToldSo) {
  Start();
  RawClient client(server_->port());
  client.Send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf");
  client.HalfClose();
  EXPECT_THAT(client.ReadToEnd(), StartsWith("HTTP/1.1 400 "));
}

TEST_F(HostileClient, OneThatDoesNotReadItsAnswerIsCutOff) {
  Start();
  RawClient client(server_->port(), 4096);
  client.Send(Get("/keep"));
  auto exchange = NextKept();
  Response response;
  response.parts.push_back(Bytes::Own(AlignedBuffer(50'000'000)));
  const std::weak_ptr<const void> memory = response.parts[0].owner;
  exchange->Respond(std::move(response));
  exchange.reset();
  // Once it is stuck, only the clock can help.
  clock_.Advance(20s);
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(memory.expired());
  EXPECT_TRUE(Eventually([&] {
    clock_.Advance(31s);
    return server_->connections() == 0;
  }));
  EXPECT_TRUE(Eventually([&] { return memory.expired(); }));
}

TEST_F(HostileClient, OneThatReadsItsAnswerTooSlowlyIsCutOffHoweverFastItBegan) {
  Start();
  RawClient client(server_->port(), 4096);
  client.Send(Get("/keep"));
  Response response;
  response.body.assign(50'000'000, 'x');
  NextKept()->Respond(std::move(response));
  ASSERT_TRUE(client.Take(20'000'000));
  const MonotonicTime begun = clock_.Now();
  EXPECT_TRUE(Eventually([&] {
    (void)client.Take(100);
    clock_.Advance(1s);
    return server_->connections() == 0;
  }));
  // At the stated rate what was read fast would have paid for five hours.
  EXPECT_LT(clock_.Now() - begun, 1h);
}

TEST_F(HostileClient, OneThatReadsItsAnswerSlowlyButSteadilyGetsItAll) {
  Start();
  RawClient client(server_->port(), 4096);
  client.Send(Get("/keep"));
  Response response;
  response.body.assign(10'000'000, 'x');
  NextKept()->Respond(std::move(response));
  // The kernel may take megabytes from the server at once and then nothing for minutes of this.
  for (int taken = 0; taken < 10'000'000; taken += 50'000) {
    ASSERT_TRUE(client.Take(50'000)) << taken;
    std::this_thread::sleep_for(3ms);
    clock_.Advance(10s);
  }
}

TEST_F(HostileClient, BeyondTheConnectionLimitIsToldToComeBack) {
  ServerOptions options = Options(clock_);
  options.max_connections = 3;
  Start(std::move(options));
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<RawClient>(server_->port()));
    EXPECT_EQ(clients.back()->Ask(Get("/a")).status, 200);
  }
  const RawAnswer answer = RawClient(server_->port()).Read();
  EXPECT_EQ(answer.status, 503);
  EXPECT_THAT(answer.head, HasSubstr("Retry-After: 1"));
  clients.pop_back();
  ASSERT_TRUE(EventuallyConnections(2));
  EXPECT_EQ(RawClient(server_->port()).Ask(Get("/a")).status, 200);
}

TEST_F(HostileClient, HoldingAllConnectionsIdleKeepsNobodyOutForLong) {
  ServerOptions options = Options(clock_);
  options.max_connections = 8;
  Start(std::move(options));
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 8; ++i) clients.push_back(std::make_unique<RawClient>(server_->port()));
  ASSERT_TRUE(EventuallyConnections(8));
  clock_.Advance(2s);
  EXPECT_TRUE(Eventually([&] { return server_->connections() < 8; }));
  EXPECT_EQ(RawClient(server_->port()).Ask(Get("/a")).status, 200);
}

TEST_F(HostileClient, ManyLargeBodiesAtOnceAreBoundedTogether) {
  ServerOptions options = Options(clock_);
  options.max_body_total = 3'500'000;
  Start(std::move(options));
  RawClient first(server_->port());
  first.Send(Post("/keep", std::string(2'000'000, 'x')));
  auto exchange = NextKept();
  ASSERT_TRUE(exchange);
  RawClient second(server_->port());
  const RawAnswer answer = second.Ask(Post("/", std::string(2'000'000, 'x')));
  EXPECT_EQ(answer.status, 503);
  EXPECT_THAT(answer.head, HasSubstr("Retry-After"));
  exchange->Respond({});
  exchange.reset();
  EXPECT_EQ(first.Read().status, 200);
  EXPECT_EQ(RawClient(server_->port()).Ask(Post("/", std::string(2'000'000, 'x'))).status, 200);
}

TEST_F(HostileClient, AnswersThatNobodyTakesAreBoundedTogether) {
  constexpr std::size_t kLarge = 32 << 20;  // More than the kernel takes off our hands.
  ServerOptions options = Options(clock_);
  options.max_answer_total = kLarge + kLarge / 2;
  Start(std::move(options));
  const auto ask = [&](RawClient& client, std::size_t size) {
    client.Send(Get("/keep"));
    const auto exchange = NextKept();
    ASSERT_TRUE(exchange);
    exchange->Respond({.body = std::string(size, 'x')});
  };
  RawClient first(server_->port()), second(server_->port()), third(server_->port());
  ask(first, kLarge);
  ask(second, kLarge);
  const RawAnswer refused = second.Read();
  EXPECT_EQ(refused.status, 503);
  EXPECT_THAT(refused.head, HasSubstr("Retry-After"));
  EXPECT_THAT(refused.body, HasSubstr("no memory is left for answers"));
  ask(third, 20'000);  // A small one still has room.
  EXPECT_EQ(third.Read().status, 200);

  EXPECT_EQ(first.Read().body.size(), kLarge);
  // Taken, or given up: either way there is room again.
  ask(second, kLarge);
  second.Reset();
  ASSERT_TRUE(EventuallyConnections(2));
  ask(third, kLarge);
  EXPECT_EQ(third.Read().body.size(), kLarge);
}

TEST_F(HostileClient, AnAnswerAloneMayBeLargerThanTheBoundOfAll) {
  ServerOptions options = Options(clock_);
  options.max_answer_total = 1000;
  Start(std::move(options));
  RawClient client(server_->port());
  client.Send(Get("/keep"));
  const auto exchange = NextKept();
  ASSERT_TRUE(exchange);
  exchange->Respond({.body = std::string(5 << 20, 'x')});
  EXPECT_EQ(client.Read().body.size(), 5U << 20);
}

TEST_F(HostileClient, UrgentDataIsNoTroubleToTheServer) {
  Start();
  RawClient client(server_->port());
  client.SendUrgent('!');
  client.Send(Get("/a"));
  EXPECT_EQ(client.Read().status, 200);
}

}  // namespace
}  // namespace tandem::http
