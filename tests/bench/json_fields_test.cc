#include "bench/json_fields.h"

#include <string>

#include <gtest/gtest.h>

#include "api/wire/json_document.h"

namespace tandem::bench {
namespace {

std::string ErrorOf(const auto& result) {
  return result ? "no error" : result.error().message;
}

class JsonFieldsTest : public testing::Test {
 protected:
  JsonFields Fields(const std::string& text) {
    auto parsed = ParseStrictJson(text);
    EXPECT_TRUE(parsed) << ErrorOf(parsed);
    json_ = *parsed;
    return *JsonFields::Of(json_, "/place");
  }

  Json::Value json_;
};

TEST_F(JsonFieldsTest, ReadsWhatIsThereAndDefaultsForWhatIsNot) {
  JsonFields fields = Fields(
      R"({"text":"µs","number":1.5,"whole":3,"flag":true,"list":["a","b"],"one":"c","object":{"x":"y"},"objects":[{}]})");
  EXPECT_EQ(*fields.Text("text"), "µs");
  EXPECT_EQ(*fields.Number("number", 0, 2), 1.5);
  EXPECT_EQ(*fields.Whole("whole", 1, 3), 3);
  EXPECT_TRUE(*fields.FlagOr("flag", false));
  EXPECT_EQ(*fields.Texts("list"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(*fields.Texts("one"), std::vector<std::string>{"c"});
  EXPECT_EQ(fields.TextMembers("object")->at(0), (std::pair<std::string, std::string>{"x", "y"}));
  EXPECT_EQ(fields.Objects("objects")->size(), 1U);
  EXPECT_TRUE(fields.Finish());

  EXPECT_EQ(*fields.TextOr("none", "fallback"), "fallback");
  EXPECT_EQ(*fields.OptionalNumber("none", 0, 1), std::nullopt);
  EXPECT_EQ(*fields.WholeOr("none", 1, 9, 7), 7);
  EXPECT_FALSE(*fields.FlagOr("none", false));
  EXPECT_TRUE(fields.Texts("none")->empty());
  EXPECT_TRUE(fields.TextMembers("none")->empty());
  EXPECT_TRUE(fields.Objects("none")->empty());
}

TEST_F(JsonFieldsTest, AFieldThatNobodyAskedForIsAnErrorWithItsPlace) {
  JsonFields fields = Fields(R"({"known":1,"mu/st":2})");
  EXPECT_TRUE(fields.Number("known", 0, 9));
  EXPECT_EQ(ErrorOf(fields.Finish()), "/place/mu~1st: is not known here");
}

TEST_F(JsonFieldsTest, SaysWhatIsWrongWithAFieldAndWhere) {
  JsonFields fields =
      Fields(R"({"text":7,"empty":"","control":"a\u0007b","number":"x","low":-1,"high":11,"half":1.5,"flag":1,)"
             R"("list":{},"items":["a",2],"objects":[{},3],"object":[],"members":{"x":5}})");
  EXPECT_EQ(ErrorOf(fields.Text("text")), "/place/text: must be a text, not 7");
  EXPECT_EQ(ErrorOf(fields.Text("empty")), "/place/empty: must not be empty");
  EXPECT_EQ(ErrorOf(fields.Text("absent")), "/place/absent: is missing");
  EXPECT_TRUE(ErrorOf(fields.Text("control")).starts_with("/place/control: must be UTF-8 without control characters"));
  EXPECT_EQ(ErrorOf(fields.Number("number", 0, 9)), "/place/number: must be a number, not \"x\"");
  EXPECT_EQ(ErrorOf(fields.Number("low", 0, 9)), "/place/low: must be from 0 to 9, not -1");
  EXPECT_EQ(ErrorOf(fields.Number("high", 0, 9)), "/place/high: must be from 0 to 9, not 11");
  EXPECT_EQ(ErrorOf(fields.Whole("half", 0, 9)), "/place/half: must be a whole number, not 1.5");
  EXPECT_EQ(ErrorOf(fields.FlagOr("flag", true)), "/place/flag: must be true or false, not 1");
  EXPECT_EQ(ErrorOf(fields.Texts("list")), "/place/list: must be a text or a list of at most 1000 texts, not {}");
  EXPECT_EQ(ErrorOf(fields.Texts("items")), "/place/items/1: must be a text, not 2");
  EXPECT_EQ(ErrorOf(fields.Objects("objects")), "/place/objects/1: must be an object, not 3");
  EXPECT_EQ(ErrorOf(fields.Object("object")), "/place/object: must be an object, not []");
  EXPECT_EQ(ErrorOf(fields.TextMembers("members")), "/place/members/x: must be a text, not 5");
}

}  // namespace
}  // namespace tandem::bench
