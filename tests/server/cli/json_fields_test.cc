#include "server/cli/json_fields.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace tandem::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class JsonFieldsTest : public ::testing::Test {
 protected:
  JsonFieldsTest()
      : file_(std::filesystem::temp_directory_path() / ("fields_" + std::to_string(::getpid()) + ".json")) {}
  ~JsonFieldsTest() override { std::filesystem::remove(file_); }

  Result<Json::Value> Read(const std::string& text) {
    std::ofstream(file_) << text;
    return ReadJsonObject(file_);
  }

  const std::filesystem::path file_;
  std::vector<std::string> mistakes_;
};

TEST_F(JsonFieldsTest, ReadsWhatIsThereAndLeavesTheRest) {
  const auto json = Read(R"({"rate": 1.5, "users": 3, "name": "x", "on": true})");
  ASSERT_TRUE(json);
  JsonFields fields(*json, "", mistakes_);
  std::optional<double> rate;
  double other = 7;
  std::optional<int> users;
  std::string name;
  bool on = false;
  fields.Number("rate", rate, 0, 10);
  fields.Number("other", other, 0, 10);
  fields.Whole("users", users, 1, 5);
  fields.Text("name", name);
  fields.Flag("on", on);
  fields.Finish();
  EXPECT_THAT(mistakes_, ElementsAre());
  EXPECT_EQ(rate, 1.5);
  EXPECT_EQ(other, 7);
  EXPECT_EQ(users, 3);
  EXPECT_EQ(name, "x");
  EXPECT_TRUE(on);
}

TEST_F(JsonFieldsTest, NotesEveryMistakeWithItsPointerAndValue) {
  const auto json = Read(R"({"a": "x", "b": 9, "c": 1.5, "d": "", "e": 1, "f/g~h": [1]})");
  ASSERT_TRUE(json);
  JsonFields fields(*json, "/models/2", mistakes_);
  double number = 0;
  int whole = 0;
  std::string text;
  bool flag = false;
  fields.Number("a", number, 0, 1);
  fields.Number("b", number, 0, 1);
  fields.Whole("c", whole, 0, 1);
  fields.Text("d", text);
  fields.Flag("e", flag);
  fields.Missing("z", "it is needed");
  fields.Finish();
  EXPECT_THAT(
      mistakes_,
      ElementsAre(HasSubstr("/models/2/a is \"x\"; it must be a number from 0 to 1"), HasSubstr("/models/2/b is 9"),
                  HasSubstr("/models/2/c is 1.5; it must be a whole"), HasSubstr("/models/2/d is \"\""),
                  HasSubstr("/models/2/e is 1; it must be true or"), HasSubstr("/models/2/z is missing: it is needed"),
                  HasSubstr("/models/2/f~1g~0h is not known: its value is [1]; there are a, b, c")));
}

TEST_F(JsonFieldsTest, RefusesWhatIsNoObject) {
  for (const char* text : {"", "[]", "5", "{", "{\"a\": 1, \"a\": 2}", "{\"a\": 1} x", "{a: 1}", "{\"a\": 1,}"}) {
    const auto json = Read(text);
    ASSERT_FALSE(json) << text;
    EXPECT_EQ(json.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(json.error().message, HasSubstr(file_.string()));
  }
  EXPECT_FALSE(Read("{\"a\":" + std::string(1000, '[') + std::string(1000, ']') + "}"));
  EXPECT_FALSE(Read("{\"a\": \"" + std::string(2 << 20, 'x') + "\"}"));
  EXPECT_FALSE(ReadJsonObject("/no/such/file.json"));
  EXPECT_FALSE(ReadJsonObject("/dev/zero"));
}

TEST_F(JsonFieldsTest, LongValuesAreCut) {
  const auto json = Read("{\"a\": \"" + std::string(10'000, 'x') + "\"}");
  ASSERT_TRUE(json);
  EXPECT_LT(JsonExcerpt((*json)["a"]).size(), 200u);
}

}  // namespace
}  // namespace tandem::cli
