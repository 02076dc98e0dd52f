#include "server/http/response.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem::http {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Head(const Response& response, const Delivery& delivery = {}) {
  std::string text;
  AppendHead(response, delivery, text);
  return text;
}

TEST(Response, TellsLengthAndTypeOfAllItsContent) {
  Response response = JsonResponse(200, "{}");
  AlignedBuffer tensor(10);
  response.parts.push_back(Bytes::Own(std::move(tensor)));
  EXPECT_EQ(Head(response), "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n");
}

TEST(Response, ClosesOrKeepsAsTheClientsVersionExpects) {
  EXPECT_THAT(Head({}, {.keep_alive = false}), HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(Head({}, {.keep_alive = true, .minor_version = 1}), Not(HasSubstr("Connection")));
  EXPECT_THAT(Head({}, {.keep_alive = true, .minor_version = 0}), HasSubstr("Connection: keep-alive\r\n"));
}

TEST(Response, ErrorIsOneJsonFieldWhateverTheMessageHolds) {
  EXPECT_EQ(ErrorResponse(400, "a \"b\" \\ \n\x01").body, R"({"error":"a \"b\" \\ \n\u0001"})");
  EXPECT_EQ(ErrorResponse(400, "x\xff\xc3y").body, "{\"error\":\"x\xef\xbf\xbd\xef\xbf\xbdy\"}");
  EXPECT_EQ(ErrorResponse(400, "grün").body, "{\"error\":\"grün\"}");
}

TEST(Response, EveryErrorCodeHasItsStatus) {
  EXPECT_EQ(HttpStatus(ErrorCode::kInvalidArgument), 400);
  EXPECT_EQ(HttpStatus(ErrorCode::kUnauthenticated), 401);
  EXPECT_EQ(HttpStatus(ErrorCode::kNotFound), 404);
  EXPECT_EQ(HttpStatus(ErrorCode::kConflict), 409);
  EXPECT_EQ(HttpStatus(ErrorCode::kTooLarge), 413);
  EXPECT_EQ(HttpStatus(ErrorCode::kCancelled), 499);
  EXPECT_EQ(HttpStatus(ErrorCode::kInternal), 500);
  EXPECT_EQ(HttpStatus(ErrorCode::kUnsupported), 501);
  EXPECT_EQ(HttpStatus(ErrorCode::kUnavailable), 503);
  EXPECT_EQ(HttpStatus(ErrorCode::kDeadlineExceeded), 503);
}

TEST(Response, UnavailableSaysWhenToRetryUnlessTheHandlerDid) {
  EXPECT_THAT(Head(ErrorResponse(Error{ErrorCode::kUnavailable, "full"})), HasSubstr("Retry-After: 1\r\n"));
  Response own = ErrorResponse(503, "full");
  own.headers.emplace_back("retry-after", "7");
  EXPECT_THAT(Head(own), HasSubstr("retry-after: 7\r\n"));
  EXPECT_THAT(Head(own), Not(HasSubstr("Retry-After: 1")));
}

TEST(Response, WhatIsKnownOfTheWaitIsToldInWholeSecondsAndInMilliseconds) {
  Error full{ErrorCode::kUnavailable, "full"};
  EXPECT_THAT(Head(ErrorResponse(full)), Not(HasSubstr("Tandem-Retry-After-Ms")));
  full.retry_after = std::chrono::milliseconds(2001);
  EXPECT_THAT(Head(ErrorResponse(full)), HasSubstr("Retry-After: 3\r\nTandem-Retry-After-Ms: 2001\r\n"));
  full.retry_after = std::chrono::milliseconds(1);
  EXPECT_THAT(Head(ErrorResponse(full)), HasSubstr("Retry-After: 1\r\nTandem-Retry-After-Ms: 1\r\n"));
}

TEST(Response, UnauthenticatedSaysHow) {
  EXPECT_THAT(Head(ErrorResponse(401, "no token")), HasSubstr("WWW-Authenticate: Bearer\r\n"));
}

TEST(Response, HandlersFieldsCannotAddLines) {
  Response response;
  response.headers.emplace_back("X-Id", "a\r\nSet-Cookie: b\n\tc");
  EXPECT_THAT(Head(response), HasSubstr("X-Id: a  Set-Cookie: b  c\r\n"));
}

TEST(Response, HeadHasTheLengthButNoContent) {
  const Response response = JsonResponse(200, "{}");
  EXPECT_THAT(Head(response, {.head_only = true}), HasSubstr("Content-Length: 2\r\n"));
  EXPECT_FALSE(HasContent(response, {.head_only = true}));
}

TEST(Response, NoContentHasNoLength) {
  Response response;
  response.status = 204;
  EXPECT_EQ(Head(response), "HTTP/1.1 204 No Content\r\n\r\n");
  EXPECT_FALSE(HasContent(response, {}));
}

}  // namespace
}  // namespace tandem::http
