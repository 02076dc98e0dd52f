#include "loadgen/target.h"

#include <gtest/gtest.h>

namespace tandem::loadgen {
namespace {

TEST(ParseTarget, TakesWhatPeopleWrite) {
  const auto expect = [](const char* url, Scheme scheme, const std::string& host, int port) {
    const auto target = ParseTarget(url, kEveryScheme);
    ASSERT_TRUE(target) << url << ": " << target.error().message;
    EXPECT_EQ(target->scheme, scheme) << url;
    EXPECT_EQ(target->host, host) << url;
    EXPECT_EQ(target->port, port) << url;
  };
  expect("http://127.0.0.1:9000", Scheme::kHttp, "127.0.0.1", 9000);
  expect("http://example/", Scheme::kHttp, "example", 8000);
  expect("http://localhost:80/", Scheme::kHttp, "localhost", 80);
  expect("https://example", Scheme::kHttps, "example", 8000);
  expect("https://example:443", Scheme::kHttps, "example", 443);
  expect("grpc://example", Scheme::kGrpc, "example", 8001);
  expect("grpcs://example:65535", Scheme::kGrpcs, "example", 65535);
  expect("http://[::1]:8001", Scheme::kHttp, "::1", 8001);
  expect("grpc://[::1]", Scheme::kGrpc, "::1", 8001);
  expect("https://[fe80::1]/", Scheme::kHttps, "fe80::1", 8000);
}

TEST(ParseTarget, RefusesAllElseAndNamesIt) {
  for (const char* url : {"",
                          "x",
                          "localhost:80",
                          "[::1]",
                          "://x",
                          "HTTP://x",
                          "ftp://x",
                          "http://",
                          "grpc:///",
                          "http://:80",
                          "http://x:0",
                          "http://x:-1",
                          "http://x:65536",
                          "https://x:8a",
                          "http://x:",
                          "http://x/v2",
                          "http://x//",
                          "http://x?a",
                          "http://u@x",
                          "http://[::1",
                          "http://[::1]x",
                          "http://[]:80",
                          "http://::1",
                          "http://a b"}) {
    const auto target = ParseTarget(url, kEveryScheme);
    ASSERT_FALSE(target) << url;
    EXPECT_NE(target.error().message.find("'" + std::string(url) + "'"), std::string::npos) << target.error().message;
    EXPECT_EQ(target.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(ParseTarget, RefusesASchemeThatItsCallerDoesNotSpeak) {
  const auto target = ParseTarget("grpcs://x", kHttpSchemes);
  ASSERT_FALSE(target);
  EXPECT_EQ(target.error().message,
            "URL 'grpcs://x' asks for grpcs, which is not spoken here; it should look like http://127.0.0.1:8000 or "
            "https://127.0.0.1:8000");
  EXPECT_FALSE(ParseTarget("https://x", kPlainHttp));
  EXPECT_TRUE(ParseTarget("https://x", kHttpSchemes));
}

TEST(PathSegment, EscapesAllButLettersDigitsAndFourSigns) {
  EXPECT_EQ(PathSegment("squeezenet-1.0_a~Z"), "squeezenet-1.0_a~Z");
  EXPECT_EQ(PathSegment("a/b c?d#%"), "a%2Fb%20c%3Fd%23%25");
  EXPECT_EQ(PathSegment("\xc3\xa9"), "%C3%A9");
  EXPECT_EQ(PathSegment(""), "");
}

}  // namespace
}  // namespace tandem::loadgen
