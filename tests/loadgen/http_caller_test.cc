#include "loadgen/http_caller.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "loadgen/infer_request_bytes.h"
#include "tests/loadgen/scripted_server.h"
#include "tests/loadgen/tls_folder.h"

namespace tandem::loadgen {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

HttpRequest Get() {
  HttpRequest request = BuildGet("localhost", 1, "/");
  request.keep_body = true;
  return request;
}

std::unique_ptr<HttpCaller> CallerOf(int port) {
  return *HttpCaller::Create({.scheme = Scheme::kHttp, .host = "127.0.0.1", .port = port});
}

TEST(HttpCaller, KeepsItsConnection) {
  ScriptedServer server([](int, const std::string&) { return ScriptedReply::Ok("hello"); });
  const auto caller = CallerOf(server.port());
  EXPECT_FALSE(caller->reached());
  for (int i = 0; i < 5; ++i) {
    const auto answer = caller->Call(Get(), hours(1));
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->status, 200);
    EXPECT_EQ(answer->body, "hello");
    EXPECT_EQ(answer->json_bytes, std::nullopt);
  }
  EXPECT_TRUE(caller->reached());
  // One to see whether the server is there.
  EXPECT_EQ(server.connections(), 2);
}

TEST(HttpCaller, HandsOutHowMuchOfABodyIsJson) {
  ScriptedServer server([](int, const std::string&) {
    return ScriptedReply{.bytes =
                             "HTTP/1.1 200 OK\r\nInference-header-CONTENT-length:  2 \r\nContent-Length: 3\r\n\r\n{}x"};
  });
  const auto answer = CallerOf(server.port())->Call(Get(), hours(1));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->json_bytes, "2");
}

TEST(HttpCaller, AsksAgainWhenAKeptConnectionHadBeenClosed) {
  ScriptedServer server([](int, const std::string&) {
    ScriptedReply reply = ScriptedReply::Ok();
    reply.close = true;
    return reply;
  });
  const auto caller = CallerOf(server.port());
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(caller->Call(Get(), hours(1)));
}

TEST(HttpCaller, SaysWhatWentWrong) {
  const auto error = [](int port, milliseconds timeout = hours(1)) {
    const auto answer = CallerOf(port)->Call(Get(), timeout);
    EXPECT_FALSE(answer);
    return answer ? "answered" : answer.error().message;
  };
  int gone = 0;
  {
    ScriptedServer server([](int, const std::string&) { return ScriptedReply::Ok(); });
    gone = server.port();
    server.Hold();
    EXPECT_THAT(error(gone, milliseconds(20)), HasSubstr("no answer in time"));
  }
  EXPECT_THAT(error(gone), HasSubstr("127.0.0.1:" + std::to_string(gone)));
  const Listener closes("");
  EXPECT_THAT(error(closes.port()), HasSubstr("if it speaks TLS, the URL begins with https://"));
  const Listener mumbles("what?\r\n");
  EXPECT_THAT(error(mumbles.port()), HasSubstr("not HTTP"));
  const Listener stops("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
  EXPECT_THAT(error(stops.port()), HasSubstr("cut short"));
}

TEST(HttpCaller, HearsAnAnswerBeforeItHasSaidAll) {
  HttpRequest request = Get();
  request.head = "POST / HTTP/1.1\r\n\r\n";  // The server sees a whole request here, and the rest as surplus.
  AlignedBuffer rest(32 << 20);
  std::ranges::fill(rest.span(), std::byte{'x'});
  request.parts = {Bytes::Own(std::move(rest))};
  ScriptedServer server([](int, const std::string&) {
    return ScriptedReply{.bytes = "HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"};
  });
  const auto answer = CallerOf(server.port())->Call(request, hours(1));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 413);
}

// A chunk and a part of the next, and no more.
ScriptedReply Unfinished(int, const std::string&) {
  return {.bytes = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n3\r\nt"};
}

TEST(HttpCaller, HearsAPieceBeforeTheAnswerHasEnded) {
  ScriptedServer server(Unfinished);
  const auto caller = CallerOf(server.port());
  std::string heard;
  const auto answer = caller->Listen(Get(), {.timeout = hours(1), .on_piece = [&](std::string_view piece) {
                                               heard += piece;
                                               return heard != "onet";  // All that comes by itself.
                                             }});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, "");
  EXPECT_EQ(heard, "onet");
}

TEST(HttpCaller, KeepsItsConnectionAfterAnAnswerInPieces) {
  ScriptedServer server([](int, const std::string&) {
    return ScriptedReply{.bytes = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"};
  });
  const auto caller = CallerOf(server.port());
  std::string heard;
  for (int i = 0; i < 3; ++i) {
    const auto answer = caller->Listen(Get(), {.timeout = hours(1), .on_piece = [&](std::string_view piece) {
                                                 heard += piece;
                                                 return true;
                                               }});
    ASSERT_TRUE(answer) << answer.error().message;
  }
  EXPECT_EQ(heard, "hihihi");
  EXPECT_EQ(server.connections(), 2);
}

TEST(HttpCaller, SaysThatAStreamBroke) {
  const Listener stops("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf");
  std::string heard;
  const auto answer = CallerOf(stops.port())->Listen(Get(), {.timeout = hours(1), .on_piece = [&](std::string_view p) {
                                                               heard += p;
                                                               return true;
                                                             }});
  ASSERT_FALSE(answer);
  EXPECT_EQ(heard, "half");
  EXPECT_THAT(answer.error().message, HasSubstr("cut short"));
}

TEST(HttpCaller, AStreamThatFallsSilentIsGivenUp) {
  ScriptedServer server(Unfinished);
  const auto answer = CallerOf(server.port())->Listen(Get(), {.timeout = hours(1), .max_silence = milliseconds(20)});
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message, HasSubstr("in time"));
}

TEST(HttpCaller, AnErrorIsAnsweredWhole) {
  ScriptedServer server([](int, const std::string&) {
    return ScriptedReply{.bytes = "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone"};
  });
  const auto answer = CallerOf(server.port())->Listen(Get(), {.timeout = hours(1), .on_piece = [](std::string_view) {
                                                                ADD_FAILURE() << "a piece of an error";
                                                                return true;
                                                              }});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 404);
  EXPECT_EQ(answer->body, "none");
}

class HttpCallerTls : public TlsFolder {};

TEST_F(HttpCallerTls, AsksOverTls) {
  const ScriptedTls tls{own_.certificate_file, own_.key_file};
  ScriptedServer server([](int, const std::string&) { return ScriptedReply::Ok("secret"); }, {.tls = &tls});
  const Target target{.scheme = Scheme::kHttps, .host = "localhost", .port = server.port()};
  const auto fetched = Fetch(target, "/", hours(1), Trusting(authority_));
  ASSERT_TRUE(fetched) << fetched.error().message;
  EXPECT_EQ(fetched->body, "secret");
  const auto refused = Fetch(target, "/", hours(1), Trusting(stranger_));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("https://localhost:"));
  EXPECT_THAT(refused.error().message, HasSubstr("is not trusted"));
  const auto plain = Fetch({.scheme = Scheme::kHttp, .host = "127.0.0.1", .port = server.port()}, "/", hours(1));
  ASSERT_FALSE(plain);
  EXPECT_THAT(plain.error().message, HasSubstr("https://"));
}

TEST_F(HttpCallerTls, SaysThatAClientCertificateIsWanted) {
  const ScriptedTls tls{own_.certificate_file, own_.key_file, authority_.certificate_file};
  ScriptedServer server([](int, const std::string&) { return ScriptedReply::Ok(); }, {.tls = &tls});
  const auto answer = Fetch({.scheme = Scheme::kHttps, .host = "127.0.0.1", .port = server.port()}, "/", hours(1),
                            Trusting(authority_));
  ASSERT_FALSE(answer);
  // When the server closes before it has read all, its word may be lost.
  EXPECT_THAT(answer.error().message,
              ::testing::AnyOf(HasSubstr("wants a client certificate"), HasSubstr("onnection"), HasSubstr("pipe")));
}

}  // namespace
}  // namespace tandem::loadgen
