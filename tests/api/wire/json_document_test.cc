#include "api/wire/json_document.h"

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace tandem {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(ParseStrictJson, RefusesWhatIsNotExactlyOneValue) {
  for (const char* text :
       {"", "{", "{} {}", "{\"a\":1,}", "// no\n{}", "{'a':1}", "{\"a\":1,\"a\":2}", "{\"a\":NaN}", "\"\xFF\"", "01"}) {
    const auto json = ParseStrictJson(text);
    ASSERT_FALSE(json) << text;
    EXPECT_EQ(json.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(json.error().message, StartsWith("not JSON: "));
  }
  EXPECT_FALSE(ParseStrictJson(std::string(40, '[') + std::string(40, ']')));
}

TEST(JsonLine, EqualValuesGiveEqualTextThatReadsBack) {
  const auto json =
      ParseStrictJson(R"( {"b": [1, 0.1, 1e-8, 18446744073709551615, null], "a": {"x": "ü\n"}, "": true} )");
  ASSERT_TRUE(json);
  const std::string line = JsonLine(*json);
  EXPECT_EQ(line, R"({"":true,"a":{"x":"ü\n"},"b":[1,0.1,1e-08,18446744073709551615,null]})");
  EXPECT_EQ(JsonLine(*ParseStrictJson(line)), line);
  EXPECT_EQ(JsonLine(std::numeric_limits<double>::quiet_NaN()), "null");
}

TEST(JsonExcerpt, LongValuesAreCut) {
  EXPECT_LT(JsonExcerpt(std::string(10'000, 'x')).size(), 200u);
}

TEST(JsonPointer, EscapesWhatThePointerItselfUses) {
  EXPECT_EQ(JsonPointer("", "a"), "/a");
  EXPECT_EQ(JsonPointer("/a", "b/c~d"), "/a/b~1c~0d");
}

class ReadJsonFileTest : public ::testing::Test {
 protected:
  ReadJsonFileTest()
      : file_(std::filesystem::temp_directory_path() / ("document_" + std::to_string(::getpid()) + ".json")) {}
  ~ReadJsonFileTest() override { std::filesystem::remove(file_); }

  Result<Json::Value> Read(const std::string& text) {
    std::ofstream(file_) << text;
    return ReadJsonFile(file_);
  }

  const std::filesystem::path file_;
};

TEST_F(ReadJsonFileTest, ReadsAnObject) {
  const auto json = Read("{\"a\": 1}\n");
  ASSERT_TRUE(json) << json.error().message;
  EXPECT_EQ((*json)["a"].asInt(), 1);
}

TEST_F(ReadJsonFileTest, RefusesWhatIsNoObjectAndNamesTheFile) {
  for (const char* text : {"", "[]", "5", "{", "{\"a\": 1, \"a\": 2}", "{\"a\": 1} x", "{a: 1}", "{\"a\": 1,}"}) {
    const auto json = Read(text);
    ASSERT_FALSE(json) << text;
    EXPECT_EQ(json.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(json.error().message, HasSubstr(file_.string()));
  }
  EXPECT_FALSE(Read("{\"a\":" + std::string(1000, '[') + std::string(1000, ']') + "}"));
  EXPECT_FALSE(Read("{\"a\": \"" + std::string(2 << 20, 'x') + "\"}"));
  EXPECT_FALSE(ReadJsonFile("/no/such/file.json"));
  EXPECT_FALSE(ReadJsonFile("/dev/zero"));
}

}  // namespace
}  // namespace tandem
