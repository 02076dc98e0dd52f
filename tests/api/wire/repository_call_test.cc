#include "api/wire/repository_call.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/api/wire/rest_bodies.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// "key=value" for each parameter, or the error.
std::vector<std::string> Read(std::string_view body) {
  std::vector<std::string> seen;
  const Status status = ReadRepositoryCall(ExactBody(body), 0, [&](std::string_view key, const ParameterValue& value) {
    seen.push_back(std::string(key) + "=" + ParameterText(value));
    return Status();
  });
  if (!status) return {status.error().message};
  return seen;
}

std::string Refusal(std::string_view body) {
  const Status status = ReadRepositoryCall(ExactBody(body), 0, [](auto, const auto&) { return Status(); });
  return status || status.error().code != ErrorCode::kInvalidArgument ? "" : status.error().message;
}

TEST(RepositoryCall, ShowsEveryParameter) {
  EXPECT_THAT(Read(R"( {"parameters": {"config": "{\"a\":1}", "flag": true, "n": -3}, "other": [1, {"x": null}]} )"),
              ElementsAre("config=\"{\"a\":1}\"", "flag=true", "n=-3"));
}

TEST(RepositoryCall, ParametersMayBeMissingOrNull) {
  for (const char* body :
       {"", "{}", R"({"parameters": null})", R"({"parameters": {}})", R"({"parameters":{"a":null}})"}) {
    EXPECT_THAT(Read(body), IsEmpty()) << body;
  }
}

TEST(RepositoryCall, RefusesWhatIsNoObject) {
  for (const char* body : {"[]", "null", "3", "\"x\"", " ", "[{}]", "{", "{}}", "{} {}", "{\"a\":01}", "\xEF\xBB\xBF{}",
                           R"({"parameters": []})", R"({"parameters": "x"})", R"({"parameters": nul})",
                           R"({"parameters": {"a": []}})", R"({"parameters": {"a": {}}})", "{\"a\":\"\xff\"}"}) {
    EXPECT_NE(Refusal(body), "") << body;
  }
  EXPECT_THAT(Refusal(R"({"parameters": {"config": "a", "config": "b"}})"), HasSubstr("'config'"));
  EXPECT_THAT(Refusal(R"({"x":)" + std::string(100'000, '[') + "}"), HasSubstr("64"));
}

TEST(RepositoryCall, HandsOnTheErrorOfWhoLooks) {
  const Status status =
      ReadRepositoryCall(ExactBody(R"({"parameters": {"a": 1}})"), 0,
                         [](auto key, const auto&) -> Status { return Fail(ErrorCode::kUnavailable, "not {}", key); });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error(), (Error{ErrorCode::kUnavailable, "not a"}));
}

}  // namespace
}  // namespace tandem
