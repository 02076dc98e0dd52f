#include "server/repository/model_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem::repository {
namespace {

TEST(ModelName, OrdinaryAndUnicodeNamesAreTaken) {
  for (const char* name : {"resnet50", "my model", "größe", "a.b-c_d", "a..."})
    EXPECT_TRUE(CheckModelName(name)) << name;
  EXPECT_TRUE(CheckModelName(std::string(255, 'a')));
}

TEST(ModelName, NamesThatAreNotOneFolderAreRefused) {
  const std::string nul("a\0b", 3);
  for (const std::string& name :
       {std::string(""), std::string("."), std::string(".."), std::string(".hidden"), std::string("a/b"),
        std::string("../a"), std::string("a\\b"), nul, std::string("a\nb"), std::string("a\x7f"), std::string(256, 'a'),
        std::string("\xff\xfe"), std::string("\xc0\xaf"), std::string("\xed\xa0\x80"), std::string("\xe2\x80\xa8")}) {
    const Status status = CheckModelName(name);
    ASSERT_FALSE(status) << name;
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(ModelName, QuotedTextIsShortAndValid) {
  EXPECT_EQ(Quotable("plain"), "plain");
  EXPECT_EQ(Quotable("a\xff\nb"), "a??b");
  const std::string cut = Quotable(std::string(5000, 'x'));
  EXPECT_LE(cut.size(), 110U);
  // A character is never cut in half.
  const std::string umlauts = Quotable("x" + [] {
    std::string s;
    for (int i = 0; i < 100; ++i) s += "ü";
    return s;
  }());
  EXPECT_TRUE(CheckModelName(umlauts));
}

TEST(ModelName, VersionFoldersArePlainPositiveIntegers) {
  EXPECT_EQ(ParseVersionFolder("1"), 1);
  EXPECT_EQ(ParseVersionFolder("9223372036854775807"), INT64_MAX);
  for (const char* name : {"", "0", "01", "-1", "+1", "1a", " 1", "1 ", "1.0", "9223372036854775808", "latest"}) {
    EXPECT_EQ(ParseVersionFolder(name), std::nullopt) << name;
  }
}

TEST(ModelName, RequestedVersionsAreDigits) {
  EXPECT_EQ(ParseRequestedVersion("7").value(), 7);
  EXPECT_EQ(ParseRequestedVersion("007").value(), 7);
  EXPECT_EQ(ParseRequestedVersion("0").value(), std::nullopt);
  EXPECT_EQ(ParseRequestedVersion("99999999999999999999999").value(), std::nullopt);
  for (const char* text : {"-1", "1a", "abc", "1.5", " 1", "%31", "../1"}) {
    const auto version = ParseRequestedVersion(text);
    ASSERT_FALSE(version) << text;
    EXPECT_EQ(version.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(version.error().message, testing::HasSubstr(text));
  }
}

}  // namespace
}  // namespace tandem::repository
