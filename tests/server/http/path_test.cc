#include "server/http/path.h"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "api/base/format.h"
#include "api/wire/json_text.h"

namespace tandem::http {
namespace {

using Segments = std::vector<std::string>;

Segments Split(std::string_view path) {
  return SplitPath(path).value_or(Segments{"<error>"});
}

TEST(SplitPath, DecodesEachSegment) {
  EXPECT_EQ(Split("/v2/models/a%20b/versions/1"), (Segments{"v2", "models", "a b", "versions", "1"}));
  EXPECT_EQ(Split("/%C3%BC"), (Segments{"ü"}));
  EXPECT_EQ(Split("/a+b"), (Segments{"a+b"}));
  EXPECT_EQ(Split("/"), Segments{});
}

TEST(SplitPath, RefusesWhatCouldNameAnotherFile) {
  for (const char* path : {"/..", "/v2/../x", "/v2/%2e%2e/x", "/v2/.%2E/x", "/v2/./x", "/v2/%2e", "/a%2fb", "/a%5Cb",
                           "/a%00b", "/a%0ab", "/a%7f"}) {
    const auto segments = SplitPath(path);
    ASSERT_FALSE(segments) << path;
    EXPECT_EQ(segments.error().code, ErrorCode::kInvalidArgument) << path;
  }
}

TEST(SplitPath, RefusesBrokenEscapesAndBrokenUtf8) {
  for (const char* path :
       {"/%", "/%4", "/%zz", "/%-1", "/%c3", "/%ff", "/%c0%af", "/%ed%a0%80", "/%f5%80%80%80", "x"}) {
    const auto segments = SplitPath(path);
    ASSERT_FALSE(segments) << path;
    EXPECT_EQ(segments.error().code, ErrorCode::kInvalidArgument) << path;
  }
}

TEST(SplitPath, FindsNothingUnderAnEmptySegment) {
  for (const char* path : {"//", "/v2/", "/v2//x", "//v2"}) {
    const auto segments = SplitPath(path);
    ASSERT_FALSE(segments) << path;
    EXPECT_EQ(segments.error().code, ErrorCode::kNotFound) << path;
  }
}

TEST(SplitPath, EchoesLittleOfAHugePath) {
  const auto segments = SplitPath("/" + std::string(10000, 'a') + "%zz");
  ASSERT_FALSE(segments);
  EXPECT_LT(segments.error().message.size(), 200u);
}

TEST(SplitPath, GivesBackWhatWasEncoded) {
  EXPECT_TRUE(rc::check([] {
    const auto name = *rc::gen::container<std::string>(rc::gen::inRange<char>(0x20, 0x7f));
    RC_PRE(!name.empty() && name != "." && name != ".." && !name.contains('/') && !name.contains('\\'));
    std::string encoded = "/";
    for (const char c : name) encoded += Format("%{:02X}", static_cast<unsigned char>(c));
    RC_ASSERT(Split(encoded) == Segments{name});
  }));
}

TEST(SplitPath, NeverFailsBadlyOnGarbage) {
  EXPECT_TRUE(rc::check([](const std::string& garbage) {
    if (const auto segments = SplitPath("/" + garbage); !segments) {
      RC_ASSERT(IsValidUtf8(segments.error().message));
    }
  }));
}

using Parameters = std::map<std::string, std::string>;

TEST(ParseQuery, DecodesNamesAndValues) {
  EXPECT_EQ(ParseQuery("").value(), Parameters());
  EXPECT_EQ(ParseQuery("a=1&b=x%20y&flag&&e=").value(),
            (Parameters{{"a", "1"}, {"b", "x y"}, {"flag", ""}, {"e", ""}}));
  EXPECT_EQ(ParseQuery("%61=%3D%26").value(), (Parameters{{"a", "=&"}}));
}

TEST(ParseQuery, RefusesWhatHasNoMeaning) {
  for (const std::string query : {"a=%z1", "a=%0a", "a=%ff", "a=1&a=2", "a%=1"}) {
    const auto parameters = ParseQuery(query);
    ASSERT_FALSE(parameters) << query;
    EXPECT_EQ(parameters.error().code, ErrorCode::kInvalidArgument) << query;
  }
  std::string many;
  for (int i = 0; i < 33; ++i) many += Format("p{}=1&", i);
  EXPECT_FALSE(ParseQuery(many));
}

}  // namespace
}  // namespace tandem::http
