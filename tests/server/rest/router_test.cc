#include "server/rest/router.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/http/request_parser.h"
#include "tests/server/http/server_fixture.h"

namespace tandem::rest {
namespace {

using http::Method;
using http::RawAnswer;
using http::RawClient;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Every handler answers with its route's name and the path's variables.
class RouterTest : public http::ServerFixture {
 protected:
  static Route Named(Method method, const std::string& pattern, const std::string& name,
                     std::size_t max_body = kMaxControlBody) {
    return {method, pattern,
            [name](const Call& call) {
              http::Response response;
              response.body = name;
              for (const std::string& variable : call.variables) response.body += "|" + variable;
              call.exchange->Respond(std::move(response));
            },
            max_body};
  }

  void Handle(std::shared_ptr<http::Exchange> exchange) override { router_.Dispatch(std::move(exchange)); }

  RawAnswer Ask(const std::string& request) {
    if (!server_) Start();
    RawClient client(server_->port());
    return client.Ask(request);
  }

  const Router router_{{Named(Method::kGet, "/v2", "root"), Named(Method::kGet, "/v2/models/{model}", "model"),
                        Named(Method::kPost, "/v2/models/{model}/infer", "infer", 2 * kMaxControlBody),
                        Named(Method::kPost, "/v2/models/{model}/versions/{version}/infer", "infer version"),
                        Named(Method::kGet, "/v2/logging", "logging"), Named(Method::kPost, "/v2/logging", "set"),
                        Named(Method::kGet, "/v2/models/stats", "stats")}};
};

TEST_F(RouterTest, HandsTheVariablesOverInOrder) {
  EXPECT_EQ(Ask(http::Get("/v2")).body, "root");
  EXPECT_EQ(Ask(http::Get("/v2/models/a")).body, "model|a");
  EXPECT_EQ(Ask(http::Post("/v2/models/a/versions/3/infer", "")).body, "infer version|a|3");
}

TEST_F(RouterTest, OnePathMayHaveSeveralMethods) {
  EXPECT_EQ(Ask(http::Get("/v2/logging")).body, "logging");
  EXPECT_EQ(Ask(http::Post("/v2/logging", "")).body, "set");
}

TEST_F(RouterTest, VariablesAreDecodedOnceAndStaySegments) {
  EXPECT_EQ(Ask(http::Get("/v2/models/a%20b")).body, "model|a b");
  EXPECT_EQ(Ask(http::Get("/v2/models/a%2520b")).body, "model|a%20b");
  EXPECT_EQ(Ask(http::Get("/v2/models/a?x=/y")).body, "model|a");
}

TEST_F(RouterTest, AnUnknownPathIsNamed) {
  for (const std::string path : {"/", "/v3", "/v2/models", "/v2/models/a/infer/more", "/v2/Models/a"}) {
    const RawAnswer answer = Ask(http::Get(path));
    EXPECT_EQ(answer.status, 404) << path;
    EXPECT_THAT(answer.body, HasSubstr(path));
  }
}

TEST_F(RouterTest, AnotherMethodIsToldWhatIsAllowed) {
  const RawAnswer infer = Ask(http::Get("/v2/models/a/infer"));
  EXPECT_EQ(infer.status, 405);
  EXPECT_THAT(infer.head, HasSubstr("Allow: POST\r\n"));
  const RawAnswer logging = Ask("DELETE /v2/logging HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(logging.status, 405);
  EXPECT_THAT(logging.head, HasSubstr("Allow: GET, HEAD, POST\r\n"));
}

TEST_F(RouterTest, AMethodThatNobodyKnowsIsToldWhatIsAllowed) {
  for (const std::string method : {"TRACE", "CONNECT", "BREW", "get", "OPTIONS"}) {
    const RawAnswer known = Ask(method + " /v2 HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(known.status, 405) << method;
    EXPECT_THAT(known.head, HasSubstr("Allow: GET, HEAD\r\n"));
    EXPECT_THAT(known.body, HasSubstr(method));
    EXPECT_EQ(Ask(method + " /v3 HTTP/1.1\r\nHost: x\r\n\r\n").status, 404) << method;
  }
}

TEST_F(RouterTest, NamesEachAllowedMethodOnce) {
  // Both the path itself and "{model}" match.
  const RawAnswer answer = Ask("DELETE /v2/models/stats HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(answer.status, 405);
  EXPECT_THAT(answer.head, HasSubstr("Allow: GET, HEAD\r\n"));
}

TEST_F(RouterTest, ABodyThatTheCallDoesNotTakeIsRefused) {
  const std::string large(kMaxControlBody + 1, ' ');
  const RawAnswer answer = Ask(http::Post("/v2/logging", large));
  EXPECT_EQ(answer.status, 413);
  EXPECT_THAT(answer.body, AllOf(HasSubstr("1048577"), HasSubstr("1048576")));
  EXPECT_EQ(Ask(http::Post("/v2/logging", large.substr(1))).status, 200);
  EXPECT_EQ(Ask(http::Post("/v2/models/a/infer", large)).status, 200);
}

TEST_F(RouterTest, ALargeBodyMayBeRefusedByItsHead) {
  const Router router({{Method::kPost, "/v2/models/{model}/infer", [](const Call&) {}, 2 * kMaxControlBody, true,
                        [](const http::RequestHead& head, const Variables& variables) -> std::optional<http::Response> {
                          if (!head.HasHeader("x-slo-ms")) return std::nullopt;
                          return http::ErrorResponse(503, "not today, " + variables.at(0));
                        }}});
  const auto refusal = [&](const std::string& path, std::size_t size, const std::string& headers) {
    http::Limits limits;
    http::RequestParser parser(limits, nullptr);
    std::size_t used = 0;
    const std::string head =
        "POST " + path + " HTTP/1.1\r\nHost: x\r\n" + headers + "Content-Length: " + std::to_string(size) + "\r\n\r\n";
    EXPECT_EQ(parser.Feed(head, used), http::RequestParser::Event::kHead);
    const auto refused = router.RefuseBody(parser.head());
    return refused ? std::to_string(refused->status) + refused->body : "none";
  };
  EXPECT_THAT(refusal("/v2/models/a%20b/infer", kLargeUnread, "X-SLO-Ms: 1\r\n"),
              AllOf(HasSubstr("503"), HasSubstr("not today, a b")));
  EXPECT_EQ(refusal("/v2/models/a/infer", kLargeUnread, ""), "none");
  EXPECT_EQ(refusal("/v2/models/a/infer", kLargeUnread - 1, "X-SLO-Ms: 1\r\n"), "none") << "it is as good as here";
  EXPECT_EQ(refusal("/v2/models/a", kLargeUnread, "X-SLO-Ms: 1\r\n"), "none") << "answered when it is here";
  EXPECT_THAT(refusal("/v2/models/a", kMaxControlBody + 1, ""), HasSubstr("404"));
  EXPECT_THAT(refusal("/v2/models/a/infer", 2 * kMaxControlBody + 1, ""), HasSubstr("413"));
}

TEST_F(RouterTest, HeadIsAnsweredWhereGetIs) {
  Start();
  RawClient client(server_->port());
  client.Send("HEAD /v2 HTTP/1.1\r\nHost: x\r\n\r\n");
  const RawAnswer answer = client.Read(/*head_only=*/true);
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(answer.head, HasSubstr("Content-Length: 4\r\n"));
}

TEST_F(RouterTest, AMalformedPathIsTheClientsMistake) {
  for (const std::string path : {"/v2/models/%", "/v2/models/%zz", "/v2/models/%00"}) {
    EXPECT_EQ(Ask(http::Get(path)).status, 400) << path;
  }
}

}  // namespace
}  // namespace tandem::rest
