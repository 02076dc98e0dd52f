#include "loadgen/http_transport.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "loadgen/infer_request_bytes.h"
#include "tests/loadgen/scripted_server.h"

namespace tandem::loadgen {
namespace {

using std::chrono::nanoseconds;

// Waits for ever, in effect: on a busy machine nothing may time out but what is meant to.
std::unique_ptr<HttpTransport> Connect(HttpTransportOptions options, HttpRequest request,
                                       nanoseconds timeout = std::chrono::hours(1)) {
  options.request_timeout = timeout;
  std::vector<HttpRequest> requests;
  requests.push_back(std::move(request));
  auto made = HttpTransport::Create(options, std::move(requests), RealClock::Instance());
  EXPECT_TRUE(made) << made.error().message;
  return made ? std::move(*made) : nullptr;
}

HttpRequest Get() {
  HttpRequest request = BuildGet("localhost", 1, "/");
  request.keep_body = true;
  return request;
}

// Sends `count` requests at once and waits for all of them.
std::vector<RequestRecord> SendAll(HttpTransport& transport, int count) {
  for (int i = 0; i < count; ++i) transport.Send(0, RealClock::Instance().Now());
  std::vector<RequestRecord> records;
  while (transport.outstanding() > 0) {
    transport.Poll(RealClock::Instance().Now() + std::chrono::seconds(1), records);
  }
  return records;
}

RequestRecord SendOne(HttpTransport& transport) {
  return SendAll(transport, 1).front();
}

TEST(HttpTransport, KeepsOneConnectionForRequestsInTurn) {
  ScriptedServer server([](int, const std::string&) { return ScriptedReply::Ok("hello"); });
  auto transport = Connect({.port = server.port()}, Get());
  for (int i = 0; i < 50; ++i) {
    const RequestRecord record = SendOne(*transport);
    EXPECT_EQ(record.status, 200);
    EXPECT_EQ(record.body, "hello");
    EXPECT_EQ(record.bytes, 5U);
    EXPECT_LE(record.scheduled, record.submitted);
    EXPECT_LE(record.submitted, record.sent);
    EXPECT_LE(record.sent, record.first_byte);
    EXPECT_LE(record.first_byte, record.done);
  }
  // One to see whether the server is there.
  EXPECT_EQ(server.connections(), 2);
}

TEST(HttpTransport, ReconnectsWhenTheServerSaysClose) {
  ScriptedServer server([](int, const std::string&) {
    return ScriptedReply{.bytes = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx", .close = true};
  });
  auto transport = Connect({.port = server.port()}, Get());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(SendOne(*transport).status, 200);
  EXPECT_EQ(server.connections(), 6);
}

TEST(HttpTransport, ReadsAnAnswerThatEndsWithTheConnection) {
  ScriptedServer server([](int, const std::string&) {
    return ScriptedReply{.bytes = "HTTP/1.1 200 OK\r\n\r\nall there is", .close = true};
  });
  auto transport = Connect({.port = server.port()}, Get());
  EXPECT_EQ(SendOne(*transport).body, "all there is");
  EXPECT_EQ(SendOne(*transport).body, "all there is");
}

TEST(HttpTransport, SendsAgainWhenAnIdleConnectionHadBeenClosed) {
  // Says keep-alive and closes all the same, as a server does whose idle time is over.
  ScriptedServer server([](int, const std::string&) {
    ScriptedReply reply = ScriptedReply::Ok();
    reply.close = true;
    return reply;
  });
  auto transport = Connect({.port = server.port()}, Get());
  for (int i = 0; i < 20; ++i) EXPECT_EQ(SendOne(*transport).status, 200);
}

TEST(HttpTransport, ReportsARequestThatGotNoAnswerAsLost) {
  ScriptedServer server([](int, const std::string&) { return ScriptedReply{.bytes = "", .close = true}; });
  auto transport = Connect({.port = server.port()}, Get());
  EXPECT_EQ(SendOne(*transport).outcome, TransportOutcome::kConnectionLost);
}

TEST(HttpTransport, ReportsAnAnswerCutShortAsLost) {
  ScriptedServer server([](int number, const std::string&) {
    if (number == 0) return ScriptedReply::Ok();
    return ScriptedReply{.bytes = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", .close = true};
  });
  auto transport = Connect({.port = server.port()}, Get());
  EXPECT_EQ(SendOne(*transport).outcome, TransportOutcome::kAnswered);
  EXPECT_EQ(SendOne(*transport).outcome, TransportOutcome::kConnectionLost);
}

TEST(HttpTransport, ReportsAnswersThatAreNotHttp) {
  ScriptedServer server([](int number, const std::string&) {
    return number == 0 ? ScriptedReply{.bytes = "what?\r\n"} : ScriptedReply::Ok();
  });
  auto transport = Connect({.port = server.port()}, Get());
  EXPECT_EQ(SendOne(*transport).outcome, TransportOutcome::kMalformed);
  EXPECT_EQ(SendOne(*transport).outcome, TransportOutcome::kAnswered);
}

TEST(HttpTransport, SendsALargeBodyInPartsUnchanged) {
  std::string expected;
  HttpRequest request = Get();
  AlignedBuffer part(2 << 20);
  for (std::size_t i = 0; i < part.size(); ++i) part.data()[i] = static_cast<std::byte>(i * 7 + i / 251);
  const Bytes bytes = Bytes::Own(std::move(part));
  request.head = "POST / HTTP/1.1\r\nContent-Length: 6291459\r\n\r\nabc";
  request.parts = {bytes, bytes, bytes};
  expected = request.head;
  for (int i = 0; i < 3; ++i) expected.append(reinterpret_cast<const char*>(bytes.view.data()), bytes.size());
  ScriptedServer server(
      [&](int, const std::string& got) { return ScriptedReply::Ok(got == expected ? "same" : "other"); });
  auto transport = Connect({.port = server.port()}, std::move(request));
  EXPECT_EQ(SendOne(*transport).body, "same");
  EXPECT_EQ(SendOne(*transport).body, "same");
}

TEST(HttpTransport, QueuesWhatExceedsItsConnections) {
  ScriptedServer server([](int, const std::string&) { return ScriptedReply::Ok(); });
  auto transport = Connect({.port = server.port(), .max_connections = 4}, Get());
  const std::vector<RequestRecord> records = SendAll(*transport, 300);
  ASSERT_EQ(records.size(), 300U);
  EXPECT_TRUE(std::ranges::all_of(records, [](const auto& record) { return record.status == 200; }));
  EXPECT_EQ(std::ranges::count_if(records, [](const auto& record) { return record.queued; }), 296);
  EXPECT_LE(server.connections(), 5);
}

TEST(HttpTransport, HoldsManyRequestsUnderWay) {
  ScriptedServer server([](int, const std::string&) { return ScriptedReply::Ok(); });
  server.Hold();
  auto transport = Connect({.port = server.port(), .max_connections = 200}, Get());
  for (int i = 0; i < 200; ++i) transport->Send(0, RealClock::Instance().Now());
  std::vector<RequestRecord> records;
  while (server.most_at_once() < 200) transport->Poll(RealClock::Instance().Now(), records);
  EXPECT_TRUE(records.empty());
  EXPECT_EQ(transport->connections(), 200U);
  server.Release();
  while (transport->outstanding() > 0) transport->Poll(RealClock::Instance().Now() + std::chrono::seconds(1), records);
  EXPECT_EQ(records.size(), 200U);
}

TEST(HttpTransport, GivesUpAfterTheTimeoutAndServesTheNextRequest) {
  ScriptedServer server([](int, const std::string&) { return ScriptedReply::Ok(); });
  server.Hold();
  auto transport = Connect({.port = server.port(), .max_connections = 1}, Get(), std::chrono::milliseconds(50));
  const std::vector<RequestRecord> records = SendAll(*transport, 3);
  for (const RequestRecord& record : records) {
    EXPECT_EQ(record.outcome, TransportOutcome::kTimedOut);
    EXPECT_GE(record.done - record.submitted, std::chrono::milliseconds(50));
  }
  server.Release();
  auto patient = Connect({.port = server.port()}, Get());
  EXPECT_EQ(SendOne(*patient).outcome, TransportOutcome::kAnswered);
}

TEST(HttpTransport, AnEarlyAnswerToAnUnreadBodyCountsAndClosesTheConnection) {
  HttpRequest request = Get();
  request.head = "POST / HTTP/1.1\r\n\r\n";  // The server sees a whole request here, and the rest as surplus.
  AlignedBuffer rest(8 << 20);
  std::ranges::fill(rest.span(), std::byte{'x'});
  request.parts = {Bytes::Own(std::move(rest))};
  ScriptedServer server([](int, const std::string&) {
    return ScriptedReply{.bytes = "HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
                         .close = false};
  });
  auto transport = Connect({.port = server.port()}, std::move(request));
  EXPECT_EQ(SendOne(*transport).status, 413);
}

TEST(HttpTransport, SaysWhichServerCannotBeReached) {
  int port = 0;
  {
    ScriptedServer gone([](int, const std::string&) { return ScriptedReply::Ok(); });
    port = gone.port();
  }
  const auto made = HttpTransport::Create({.port = port}, {}, RealClock::Instance());
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(made.error().message.find(std::to_string(port)), std::string::npos);
  EXPECT_FALSE(HttpTransport::Create({.port = 0}, {}, RealClock::Instance()));
  EXPECT_FALSE(HttpTransport::Create({.port = 70000}, {}, RealClock::Instance()));
}

TEST(HttpTransport, FailsRequestsWhoseServerHasGoneAway) {
  auto server = std::make_unique<ScriptedServer>([](int, const std::string&) { return ScriptedReply::Ok(); });
  auto transport = Connect({.port = server->port()}, Get());
  EXPECT_EQ(SendOne(*transport).status, 200);
  server.reset();
  for (int i = 0; i < 3; ++i) EXPECT_NE(SendOne(*transport).outcome, TransportOutcome::kAnswered);
}

TEST(HttpTransport, SpeaksToIpv6Addresses) {
  ScriptedServer server([](int, const std::string&) { return ScriptedReply::Ok(); }, {.ipv6 = true});
  if (server.port() == 0) GTEST_SKIP() << "no IPv6 here";
  auto transport = Connect({.host = "[::1]", .port = server.port()}, Get());
  EXPECT_EQ(SendOne(*transport).status, 200);
}

}  // namespace
}  // namespace tandem::loadgen
