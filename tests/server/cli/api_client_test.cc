#include "server/cli/api_client.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/loadgen/scripted_server.h"

namespace tandem::cli {
namespace {

using loadgen::ScriptedReply;
using loadgen::ScriptedServer;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::unique_ptr<ApiClient> ClientOf(const ScriptedServer& server) {
  return *ApiClient::Connect({.url = "http://127.0.0.1:" + std::to_string(server.port()), .token = "secret"});
}

ScriptedReply Refuse(int status, const std::string& body) {
  return {.bytes = "HTTP/1.1 " + std::to_string(status) + " No\r\nContent-Length: " + std::to_string(body.size()) +
                   "\r\n\r\n" + body};
}

TEST(ApiClient, SendsADocumentWithItsHeaders) {
  std::string request;
  ScriptedServer server([&](int, const std::string& bytes) {
    request = bytes;
    return ScriptedReply::Ok(R"({"id":1})");
  });
  const auto answer = ClientOf(server)->PostDocument("/v2/train/jobs", "{}", {{"Idempotency-Key", "k"}});
  ASSERT_TRUE(answer) << answer.error().error.message;
  EXPECT_EQ((*answer)["id"].asInt(), 1);
  EXPECT_THAT(request, StartsWith("POST /v2/train/jobs HTTP/1.1\r\n"));
  for (const char* part : {"Idempotency-Key: k\r\n", "Content-Type: application/json\r\n", "Content-Length: 2\r\n",
                           "Authorization: Bearer secret\r\n", "\r\n\r\n{}"}) {
    EXPECT_THAT(request, HasSubstr(part));
  }
}

TEST(ApiClient, HandsOnEveryProblemThatTheServerLists) {
  ScriptedServer server([](int, const std::string&) {
    return Refuse(400, R"({"error":"two things","problems":[{"pointer":"/a","message":"/a is 1"},7,{"message":"b"}]})");
  });
  const auto answer = ClientOf(server)->PostDocument("/", "{}", {});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().error, (Error{ErrorCode::kInvalidArgument, "two things"}));
  EXPECT_EQ(answer.error().problems, (std::vector<JsonMistake>{{"/a", "/a is 1"}, {"", "b"}}));
}

TEST(ApiClient, DeletesAndTellsAConflict) {
  std::string request;
  ScriptedServer server([&](int number, const std::string& bytes) {
    request = bytes;
    return number == 0 ? ScriptedReply::Ok("{}") : Refuse(409, R"({"error":"it runs"})");
  });
  const auto client = ClientOf(server);
  EXPECT_TRUE(client->Delete("/v2/train/jobs/7"));
  EXPECT_THAT(request, StartsWith("DELETE /v2/train/jobs/7 HTTP/1.1\r\n"));
  const auto refused = client->Delete("/v2/train/jobs/7");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), (Error{ErrorCode::kConflict, "it runs"}));
}

TEST(ApiClient, HearsAnAnswerInPieces) {
  ScriptedServer server([](int, const std::string&) {
    return ScriptedReply{
        .bytes = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"};
  });
  std::string heard;
  const Status done = ClientOf(server)->Listen("/logs", {.headers = {}, .on_piece = [&](std::string_view piece) {
                                                           heard += piece;
                                                           return true;
                                                         }});
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(heard, "hello world");
}

TEST(ApiClient, AnErrorIsNoPieceOfAnAnswer) {
  ScriptedServer server([](int, const std::string&) { return Refuse(404, R"({"error":"there is no job '9'"})"); });
  const Status done = ClientOf(server)->Listen("/logs", {.headers = {}, .on_piece = [](std::string_view) {
                                                           ADD_FAILURE() << "a piece of an error";
                                                           return true;
                                                         }});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error(), (Error{ErrorCode::kNotFound, "there is no job '9'"}));
}

}  // namespace
}  // namespace tandem::cli
