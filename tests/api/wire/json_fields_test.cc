#include "api/wire/json_fields.h"

#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/wire/json_document.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

class JsonFieldsTest : public ::testing::Test {
 protected:
  JsonFields Fields(const std::string& text, const std::string& pointer = "") {
    json_ = ParseStrictJson(text).value();
    return {json_, pointer, mistakes_};
  }
  static auto Says(const char* text) { return Field(&JsonMistake::message, HasSubstr(text)); }

  Json::Value json_;
  std::vector<JsonMistake> mistakes_;
};

enum class Colour { kRed, kBlue };
constexpr std::pair<std::string_view, Colour> kColours[] = {{"red", Colour::kRed}, {"blue", Colour::kBlue}};

TEST_F(JsonFieldsTest, ReadsWhatIsThereAndLeavesTheRest) {
  JsonFields fields = Fields(R"({"rate": 1.5, "users": 3, "name": "x", "on": true, "colour": "blue", "part": {}})");
  std::optional<double> rate;
  double other = 7;
  std::optional<int> users;
  std::string name;
  bool on = false;
  Colour colour = Colour::kRed;
  fields.Number("rate", rate, 0, 10);
  fields.Number("other", other, 0, 10);
  fields.Whole("users", users, 1, 5);
  fields.Text("name", name);
  fields.Flag("on", on);
  EXPECT_TRUE(fields.Choice("colour", colour, kColours));
  EXPECT_TRUE(fields.Choice("absent", colour, kColours));
  EXPECT_NE(fields.Object("part"), nullptr);
  EXPECT_EQ(fields.Object("absent"), nullptr);
  fields.Finish();
  EXPECT_THAT(mistakes_, IsEmpty());
  EXPECT_EQ(rate, 1.5);
  EXPECT_EQ(other, 7);
  EXPECT_EQ(users, 3);
  EXPECT_EQ(name, "x");
  EXPECT_TRUE(on);
  EXPECT_EQ(colour, Colour::kBlue);
}

TEST_F(JsonFieldsTest, NotesEveryMistakeWithItsPointerAndValue) {
  JsonFields fields =
      Fields(R"({"a": "x", "b": 9, "c": 1.5, "d": "", "e": 1, "f/g~h": [1], "i": "green", "j": 3})", "/models/2");
  double number = 0;
  int whole = 0;
  std::string text;
  bool flag = false;
  Colour colour = Colour::kRed;
  fields.Number("a", number, 0, 1);
  fields.Number("b", number, 0, 1);
  fields.Whole("c", whole, 0, 1);
  fields.Text("d", text);
  fields.Flag("e", flag);
  EXPECT_FALSE(fields.Choice("i", colour, kColours));
  EXPECT_EQ(fields.Object("j"), nullptr);
  fields.Contradiction("j", "there is no need");
  fields.Missing("z", "it is needed");
  fields.Finish();
  EXPECT_THAT(mistakes_,
              ElementsAre(Says("/models/2/a is \"x\"; it must be a number from 0 to 1"), Says("/models/2/b is 9"),
                          Says("/models/2/c is 1.5; it must be a whole"), Says("/models/2/d is \"\""),
                          Says("/models/2/e is 1; it must be true or"),
                          Says("/models/2/i is \"green\"; it must be one of \"red\", \"blue\""),
                          Says("/models/2/j is 3; it must be an object"),
                          Says("/models/2/j is 3, but there is no need"), Says("/models/2/z is missing: it is needed"),
                          Says("/models/2/f~1g~0h is not known: its value is [1]; there are a, b, c")));
  EXPECT_EQ(mistakes_.front().pointer, "/models/2/a");
  EXPECT_EQ(mistakes_.back().pointer, "/models/2/f~1g~0h");
}

TEST(NumberBounds, OpenBoundsLeaveOutTheBoundItself) {
  const NumberBounds open{.least = 0, .most = 1, .above = true, .below = true};
  EXPECT_TRUE(open.Hold(0.5));
  EXPECT_FALSE(open.Hold(0));
  EXPECT_FALSE(open.Hold(1));
  EXPECT_FALSE(open.Hold(std::numeric_limits<double>::quiet_NaN()));
  EXPECT_EQ(open.Words(), "a number above 0 and below 1");
  const NumberBounds half{.least = 0, .most = 1, .below = true};
  EXPECT_TRUE(half.Hold(0));
  EXPECT_EQ(half.Words(), "a number of at least 0 and below 1");
}

}  // namespace
}  // namespace tandem
