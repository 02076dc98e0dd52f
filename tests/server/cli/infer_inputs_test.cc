#include "server/cli/infer_inputs.h"

#include <cstring>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <json/json.h>

#include "server/cli/tensor_text.h"

namespace tandem::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ModelSignature Signature(DataType type, const Shape& shape) {
  return {.inputs = {{.name = "x", .type = type, .shape = shape}}, .outputs = {}};
}

Result<std::vector<Tensor>> Make(const ModelSignature& signature, const std::vector<std::string>& inputs,
                                 const std::vector<std::string>& shapes = {}, std::uint32_t seed = 0) {
  auto choices = ParseChoices(inputs, shapes);
  if (!choices) return std::unexpected(choices.error());
  return MakeInputs(signature, *choices, seed);
}

std::vector<std::string> Values(const Tensor& tensor) {
  return ElementsAsText(tensor, 1000);
}

TEST(InferChoices, SyntaxIsCheckedBeforeAModelIsKnown) {
  for (const std::string wrong : {"x", "=1", "", "x=", "x=[1", "x=nonsense", "x=@"}) {
    const auto choices = ParseChoices({wrong}, {});
    ASSERT_FALSE(choices) << wrong;
    EXPECT_EQ(choices.error().code, ErrorCode::kInvalidArgument);
  }
  EXPECT_FALSE(ParseChoices({"x=" + std::string(5000, '[')}, {}));
  for (const std::string wrong : {"x", "x:", ":1", "x:1,,2", "x:-1", "x:1,a", "x:99999999999999999999"}) {
    EXPECT_FALSE(ParseChoices({}, {wrong})) << wrong;
  }
}

TEST(InferChoices, ANameGivenTwiceIsRefused) {
  EXPECT_THAT(ParseChoices({"x=1", "x=2"}, {}).error().message, HasSubstr("--input x is given twice"));
  EXPECT_THAT(ParseChoices({}, {"x:1", "x:2"}).error().message, HasSubstr("--shape x is given twice"));
  EXPECT_THAT(ParseChoices({"x=@a.npy"}, {"x:1"}).error().message, HasSubstr("a.npy"));
}

TEST(MakeInputs, RefusesNamesThatTheModelDoesNotHave) {
  const ModelSignature signature = Signature(DataType::kFp32, {4});
  EXPECT_THAT(Make(signature, {"z=[1]"}).error().message, HasSubstr("no input 'z'; it has: x"));
  const auto shaped = Make(signature, {}, {"z:4"});
  ASSERT_FALSE(shaped);
  EXPECT_EQ(shaped.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(shaped.error().message, HasSubstr("--shape: the model has no input 'z'"));
}

TEST(MakeInputs, AFlatListFillsTheShape) {
  const struct {
    Shape model;
    std::string values;
    Shape expected;
  } cases[] = {
      {{2, 2, 2}, "[1,2,3,4,5,6,7,8]", {2, 2, 2}},
      {{-1, 2, 2}, "[1,2,3,4,5,6,7,8]", {2, 2, 2}},
      {{1, -1, 2}, "[1,2,3,4]", {1, 2, 2}},
      {{-1, -1, 2}, "[1,2,3,4]", {2, 1, 2}},
      {{-1, 4}, "[1,2,3,4]", {1, 4}},
      {{1, 1, 1}, "7", {1, 1, 1}},
      {{-1, 2, 2}, "[[1,2],[3,4]]", {1, 2, 2}},
      {{}, "7", {}},
  };
  for (const auto& c : cases) {
    const auto inputs = Make(Signature(DataType::kInt32, c.model), {"x=" + c.values});
    ASSERT_TRUE(inputs) << c.values << ": " << inputs.error().message;
    EXPECT_EQ(inputs->front().shape, c.expected) << c.values;
  }
  EXPECT_EQ(Make(Signature(DataType::kInt32, {-1, -1}), {"x=[1,2,3,4]"}, {"x:2,2"})->front().shape, (Shape{2, 2}));
  EXPECT_THAT(Make(Signature(DataType::kInt32, {-1, 4}), {"x=[1,2,3]"}).error().message,
              HasSubstr("3 values do not fill [-1,4]"));
}

TEST(MakeInputs, RefusesListsThatAreRagged) {
  for (const std::string wrong : {"[[1,2],[3]]", "[[1,2],[3,4,5],[6]]", "[1,[2]]", "[[1],2]"}) {
    EXPECT_FALSE(Make(Signature(DataType::kInt32, {-1, -1}), {"x=" + wrong})) << wrong;
  }
}

TEST(MakeInputs, RefusesValuesThatDoNotFitTheType) {
  const struct {
    DataType type;
    std::string value;
  } cases[] = {{DataType::kInt8, "128"},  {DataType::kUint8, "-1"}, {DataType::kInt32, "1.5"},
               {DataType::kFp32, "1e39"}, {DataType::kFp16, "7e4"}, {DataType::kFp32, "\"1\""},
               {DataType::kBool, "1"},    {DataType::kBytes, "1"},  {DataType::kFp32, "{}"},
               {DataType::kFp32, "null"}};
  for (const auto& c : cases) {
    const auto inputs = Make(Signature(c.type, {1}), {"x=[" + c.value + "]"});
    ASSERT_FALSE(inputs) << c.value;
    EXPECT_THAT(inputs.error().message, HasSubstr("does not fit " + std::string(DataTypeName(c.type)))) << c.value;
  }
}

TEST(MakeInputs, TakesHalfPrecisionFromJson) {
  EXPECT_THAT(Values(Make(Signature(DataType::kFp16, {2}), {"x=[1.5,-65504]"})->front()), ElementsAre("1.5", "-65504"));
  EXPECT_THAT(Values(Make(Signature(DataType::kBf16, {2}), {"x=[1.5,-2]"})->front()), ElementsAre("1.5", "-2"));
}

TEST(MakeInputs, EachRandomInputHasValuesOfItsOwn) {
  const ModelSignature two{.inputs = {{.name = "a", .type = DataType::kFp32, .shape = {-1, 4}},
                                      {.name = "b", .type = DataType::kFp32, .shape = {-1, 4}}},
                           .outputs = {}};
  const auto inputs = Make(two, {});
  ASSERT_TRUE(inputs);
  EXPECT_NE(Values(inputs->at(0)), Values(inputs->at(1)));
  EXPECT_EQ(Values(inputs->at(1)), Values(Make(two, {})->at(1)));
  EXPECT_NE(Values(inputs->at(1)), Values(Make(two, {}, {}, 1)->at(1)));
  // What is given of the one does not change the other.
  EXPECT_EQ(Values(inputs->at(1)), Values(Make(two, {"a=[1,2,3,4]"})->at(1)));
}

TEST(MakeInputs, OptionalInputsAreSentOnlyWhenAskedFor) {
  ModelSignature signature{.inputs = {{.name = "x", .type = DataType::kFp32, .shape = {4}},
                                      {.name = "bias", .type = DataType::kFp32, .shape = {4}}},
                           .outputs = {}};
  Json::Value config;
  config["input"][0]["name"] = "bias";
  config["input"][0]["optional"] = true;
  MarkOptionalInputs(config, signature);
  EXPECT_EQ(Make(signature, {})->size(), 1);
  EXPECT_EQ(Make(signature, {"bias=[1,2,3,4]"})->size(), 2);
  EXPECT_EQ(Make(signature, {}, {"bias:4"})->size(), 2);
  MarkOptionalInputs(Json::Value("nonsense"), signature);
}

TEST(MakeInputs, ABatchHasAsManyRows) {
  const ModelSignature signature = Signature(DataType::kInt32, {-1, 2});
  const auto batch = [&](const std::vector<std::string>& inputs, const std::vector<std::string>& shapes = {}) {
    return MakeInputs(signature, *ParseChoices(inputs, shapes), 0, {.size = 3, .where = "--batch"});
  };
  const auto repeated = batch({"x=[[1,2]]"});
  ASSERT_TRUE(repeated);
  EXPECT_THAT(repeated->front().shape, ElementsAre(3, 2));
  EXPECT_THAT(Values(repeated->front()), ElementsAre("1", "2", "1", "2", "1", "2"));
  EXPECT_THAT(Values(batch({"x=[[1,2],[3,4],[5,6]]"})->front()), ElementsAre("1", "2", "3", "4", "5", "6"));
  EXPECT_THAT(batch({})->front().shape, ElementsAre(3, 2));
  EXPECT_THAT(batch({}, {"x:1,5"})->front().shape, ElementsAre(3, 5));
  EXPECT_THAT(batch({"x=[[1,2],[3,4]]"}).error().message, HasSubstr("--batch is 3, but input 'x' has the shape [2,2]"));
  const auto fixed = MakeInputs(Signature(DataType::kFp32, {4}), {}, 0, {.size = 3, .where = "--batch"});
  ASSERT_FALSE(fixed);
  EXPECT_THAT(fixed.error().message, HasSubstr("no batch dimension"));
}

TEST(MakeInputs, AnInputMayHaveASeedOfItsOwn) {
  const ModelSignature signature = Signature(DataType::kFp32, {4});
  InferChoices choices;
  choices.inputs.push_back({.name = "x", .file = {}, .seed = 7, .json = {}, .where = {}, .read = {}});
  EXPECT_EQ(Values(MakeInputs(signature, choices, 1)->front()), Values(MakeInputs(signature, choices, 2)->front()));
  EXPECT_NE(Values(MakeInputs(signature, {}, 1)->front()), Values(MakeInputs(signature, choices, 1)->front()));
}

TEST(ReadFiles, NamesTheFileThatIsMissing) {
  auto choices = ParseChoices({"x=@/nonexistent/a.npy"}, {});
  ASSERT_TRUE(choices);
  const Status read = ReadFiles(*choices);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(read.error().message, HasSubstr("/nonexistent/a.npy"));
}

}  // namespace
}  // namespace tandem::cli
