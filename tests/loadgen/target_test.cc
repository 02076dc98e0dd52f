#include "loadgen/target.h"

#include <gtest/gtest.h>

namespace tandem::loadgen {
namespace {

TEST(ParseTarget, TakesWhatPeopleWrite) {
  const auto expect = [](const char* url, const std::string& host, int port) {
    const auto target = ParseTarget(url);
    ASSERT_TRUE(target) << url << ": " << target.error().message;
    EXPECT_EQ(target->host, host) << url;
    EXPECT_EQ(target->port, port) << url;
  };
  expect("http://127.0.0.1:9000", "127.0.0.1", 9000);
  expect("http://example/", "example", 8000);
  expect("localhost:80", "localhost", 80);
  expect("http://[::1]:8001", "::1", 8001);
  expect("[::1]", "::1", 8000);
}

TEST(ParseTarget, RefusesAllElseAndNamesIt) {
  for (const char* url :
       {"", "http://", "http://:80", "ftp://x", "http://x:0", "http://x:65536", "http://x:8a",
        "http://x:", "http://x/v2", "http://x?a", "http://u@x", "http://[::1", "http://[::1]x", "http://a b"}) {
    const auto target = ParseTarget(url);
    ASSERT_FALSE(target) << url;
    EXPECT_NE(target.error().message.find(url), std::string::npos) << target.error().message;
    EXPECT_EQ(target.error().code, ErrorCode::kInvalidArgument);
  }
  EXPECT_NE(ParseTarget("https://x").error().message.find("https"), std::string::npos);
}

}  // namespace
}  // namespace tandem::loadgen
