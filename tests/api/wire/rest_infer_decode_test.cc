#include "api/wire/rest_infer_decode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/format.h"
#include "api/wire/infer_parameters.h"
#include "api/wire/json_text.h"
#include "tests/api/wire/rest_bodies.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string Refusal(std::string_view json) {
  return RefusalOf(DecodeJson(json));
}

constexpr std::string_view kBinaryJson =
    R"({"inputs":[{"name":"a","shape":[2],"datatype":"INT16","parameters":{"binary_data_size":4}},)"
    R"({"name":"b","shape":[1],"datatype":"INT32","data":[5]},)"
    R"({"name":"c","shape":[3],"datatype":"UINT8","parameters":{"binary_data_size":3}}]})";

TEST(RestInferDecode, ReadsAWholeRequest) {
  const auto result = DecodeJson(R"( {"id":"r-1","unknown":{"deep":[1,{"a":null}]},
    "inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":[0.5,1]}],
    "outputs":[{"name":"y"},{"name":"z","parameters":{"binary_data":true}}]} )");
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->id, "r-1");
  ASSERT_EQ(result->inputs.size(), 1U);
  EXPECT_EQ(result->inputs[0].tensor.name, "x");
  EXPECT_EQ(result->inputs[0].tensor.type, DataType::kFp32);
  EXPECT_THAT(result->inputs[0].tensor.shape, ElementsAre(1, 2));
  ASSERT_EQ(result->outputs.size(), 2U);
  EXPECT_EQ(result->outputs[0].name, "y");
  EXPECT_EQ(result->outputs[0].binary, std::nullopt);
  EXPECT_EQ(result->outputs[1].binary, true);
}

TEST(RestInferDecode, RefusesBodiesThatAreNotOneJsonObject) {
  for (const std::string_view json : {"",
                                      " ",
                                      "null",
                                      "[]",
                                      "1",
                                      "\"text\"",
                                      "{",
                                      "}",
                                      "{\"inputs\":[]",
                                      "{\"inputs\":[]}}",
                                      "{\"inputs\":[]} x",
                                      "{\"inputs\":[]} {}",
                                      "{\"inputs\":[],}",
                                      "{inputs:[]}",
                                      "{'inputs':[]}",
                                      "{\"inputs\" []}",
                                      "{\"inputs\":[]]",
                                      "{\"inputs\":[],\"a\":}",
                                      "{\"inputs\":[],\"a\":tru}",
                                      "{\"inputs\":[],\"a\":nul}",
                                      "{\"inputs\":[],\"a\":[1,]}",
                                      "{\"inputs\":[],\"a\":\"\\x\"}",
                                      "{\"inputs\":[],\"a\":{\"b\" 1}}",
                                      "{\"inputs\":[],\"a\":01}",
                                      "{\"inputs\":[],\"a\":\"line\nbreak\"}",
                                      "{\"inputs\":[], \"a\":\"open}"}) {
    EXPECT_THAT(Refusal(json), Not(IsEmpty())) << json;
  }
}

TEST(RestInferDecode, RefusesTextThatIsNotUtf8) {
  EXPECT_THAT(Refusal("{\"inputs\":[],\"id\":\"\xFF\"}"), HasSubstr("UTF"));
  EXPECT_THAT(Refusal("{\"inputs\":[],\"other\":\"\xC3\"}"), HasSubstr("UTF"));
}

TEST(RestInferDecode, RefusesDeepNestingInMembersThatItIgnores) {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_THAT(Refusal("{\"inputs\":[],\"a\":" + deep + "}"), HasSubstr("64 levels"));
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_THAT(Refusal("{\"inputs\":[],\"a\":" + objects), Not(IsEmpty()));
  EXPECT_THAT(Refusal(std::string(100'000, '[')), Not(IsEmpty()));
}

TEST(RestInferDecode, RefusesDuplicateKeysAndNamesThem) {
  EXPECT_THAT(Refusal(R"({"inputs":[],"inputs":[]})"), HasSubstr("duplicate key 'inputs'"));
  EXPECT_THAT(Refusal(R"({"inputs":[],"note":1,"note":2})"), HasSubstr("'note'"));
  EXPECT_THAT(Refusal(R"({"inputs":[],"i\u0064":"a","id":"b"})"), HasSubstr("'id'"));
  EXPECT_THAT(Refusal(R"({"inputs":[{"name":"x","name":"y"}]})"), HasSubstr("'name' in inputs[0]"));
  EXPECT_THAT(Refusal(R"({"inputs":[],"parameters":{"priority":1,"priority":2}})"),
              HasSubstr("'priority' in parameters"));
  std::string many = R"({"inputs":[],)";
  for (int i = 0; i < 50; ++i) many += Format("\"key{}\":0,", i);
  EXPECT_THAT(Refusal(many + R"("key3":0})"), HasSubstr("'key3'"));
  EXPECT_TRUE(DecodeJson(many + R"("key50":0})"));
}

TEST(RestInferDecode, RefusesInputsAndOutputsNamedTwice) {
  const std::string x = R"({"name":"x","shape":[1],"datatype":"INT8","data":[1]})";
  EXPECT_THAT(Refusal("{\"inputs\":[" + x + "," + x + "]}"), HasSubstr("input 'x'"));
  EXPECT_THAT(Refusal(R"({"inputs":[],"outputs":[{"name":"y"},{"name":"y"}]})"), HasSubstr("output 'y'"));
}

TEST(RestInferDecode, NamesTheMemberOfTheWrongType) {
  EXPECT_THAT(Refusal(R"({"inputs":{}})"), HasSubstr("inputs is an object but must be an array"));
  EXPECT_THAT(Refusal(R"({"inputs":null})"), HasSubstr("inputs is null"));
  EXPECT_THAT(Refusal(R"({"inputs":[3]})"), HasSubstr("inputs[0] is 3"));
  EXPECT_THAT(Refusal(R"({"inputs":[{"name":5}]})"), HasSubstr("inputs[0].name is 5"));
  EXPECT_THAT(Refusal(R"({"inputs":[{"shape":5}]})"), HasSubstr("inputs[0].shape is 5"));
  EXPECT_THAT(Refusal(R"({"inputs":[{"shape":[1,"2"]}]})"), HasSubstr("inputs[0].shape[1] is \"2\""));
  EXPECT_THAT(Refusal(R"({"inputs":[{"datatype":[]}]})"), HasSubstr("inputs[0].datatype is an array"));
  EXPECT_THAT(Refusal(R"({"inputs":[{"parameters":[]}]})"), HasSubstr("inputs[0].parameters is an array"));
  EXPECT_THAT(Refusal(R"({"inputs":[],"id":7})"), HasSubstr("id is 7"));
  EXPECT_THAT(Refusal(R"({"inputs":[],"outputs":"y"})"), HasSubstr("outputs is \"y\""));
  EXPECT_THAT(Refusal(R"({"inputs":[],"outputs":["y"]})"), HasSubstr("outputs[0] is \"y\""));
  EXPECT_THAT(Refusal(R"({"inputs":[],"parameters":{"a":null}})"), HasSubstr("parameters.a is null"));
}

TEST(RestInferDecode, RefusesWhatIsMissing) {
  EXPECT_THAT(Refusal("{}"), HasSubstr("no 'inputs'"));
  EXPECT_THAT(Refusal(R"({"inputs":[{}]})"), HasSubstr("inputs[0] has no 'name'"));
  EXPECT_THAT(Refusal(R"({"inputs":[{"name":"x"}]})"), HasSubstr("no 'datatype'"));
  EXPECT_THAT(Refusal(R"({"inputs":[{"name":"x","datatype":"FP32"}]})"), HasSubstr("no 'shape'"));
  EXPECT_THAT(Refusal(R"({"inputs":[{"name":"x","datatype":"FP32","shape":[1]}]})"), HasSubstr("none of 'data'"));
  EXPECT_THAT(Refusal(R"({"inputs":[],"outputs":[{}]})"), HasSubstr("outputs[0] has no 'name'"));
  EXPECT_THAT(Refusal(R"({"inputs":[{"name":"","datatype":"FP32","shape":[0],"data":[]}]})"), HasSubstr("empty"));
}

TEST(RestInferDecode, RefusesBadDimensions) {
  EXPECT_THAT(Refusal(OneInput("FP32", "[-1]", "[1]")), HasSubstr("inputs[0].shape[0] is -1"));
  EXPECT_THAT(Refusal(OneInput("FP32", "[9223372036854775808]", "[1]")), HasSubstr("9223372036854775808"));
  EXPECT_THAT(Refusal(OneInput("FP32", "[1.5]", "[1]")), HasSubstr("1.5"));
  EXPECT_THAT(Refusal(OneInput("FP32", "[true]", "[1]")), HasSubstr("true"));
  std::string ones = "[1";
  for (int i = 0; i < 32; ++i) ones += ",1";
  EXPECT_THAT(Refusal(OneInput("FP32", ones + "]", "[1]")), HasSubstr("more than 32"));
  EXPECT_THAT(Refusal(OneInput("FLOAT", "[1]", "[1]")), HasSubstr("'FLOAT'"));
}

TEST(RestInferDecode, BoundsCountsAndNames) {
  std::string outputs;
  for (std::size_t i = 0; i <= kMaxTensors; ++i) outputs += Format("{}{{\"name\":\"o{}\"}}", i > 0 ? "," : "", i);
  EXPECT_THAT(Refusal("{\"inputs\":[],\"outputs\":[" + outputs + "]}"), HasSubstr("more than 1024"));
  EXPECT_THAT(Refusal("{\"inputs\":[],\"outputs\":[{\"name\":\"" + std::string(1025, 'n') + "\"}]}"),
              HasSubstr("1025 bytes"));
}

TEST(RestInferDecode, LongNamesAreCutInMessages) {
  const std::string name(1000, 'n');
  const std::string message = Refusal(Format(
      R"({{"inputs":[{{"name":"{}","shape":[1],"datatype":"FP32","parameters":{{"binary_data_size":0}}}}]}})", name));
  EXPECT_THAT(message, HasSubstr("needs 4 bytes"));
  EXPECT_LT(message.size(), 300U);
}

TEST(RestInferBinary, TakesBytesInTheOrderOfTheInputsWithoutCopying) {
  const std::string binary("\x01\x00\x02\x00\x07\x08\x09", 7);
  const Bytes body = ExactBody(std::string(kBinaryJson) + binary);
  const auto result = DecodeRestInfer(body, kBinaryJson.size());
  ASSERT_TRUE(result) << result.error().message;
  ASSERT_EQ(result->inputs.size(), 3U);
  EXPECT_EQ(result->inputs[0].tensor.data.view.data(), body.view.data() + kBinaryJson.size());
  EXPECT_EQ(result->inputs[0].tensor.data.owner, body.owner);
  EXPECT_EQ(result->inputs[2].tensor.data.view.data(), body.view.data() + kBinaryJson.size() + 4);
  EXPECT_THAT(ElementsOf<std::int16_t>(result), ElementsAre(1, 2));
}

TEST(RestInferBinary, RefusesMissingAndSurplusBytes) {
  EXPECT_THAT(RefusalOf(DecodeBinary(kBinaryJson, "123456")), AllOf(HasSubstr("'c'"), HasSubstr("2 bytes are left")));
  EXPECT_THAT(RefusalOf(DecodeBinary(kBinaryJson, "123456789")), HasSubstr("2 surplus bytes after the last input"));
  EXPECT_THAT(RefusalOf(DecodeBinary(kBinaryJson, std::string(500, 'a'))), HasSubstr("493 surplus bytes"));
  EXPECT_THAT(Refusal(kBinaryJson), HasSubstr("0 bytes are left"));
}

TEST(RestInferBinary, RefusesSizesThatDisagreeWithShapeAndType) {
  const auto refusal = [](std::string_view size, std::string_view bytes) {
    return RefusalOf(DecodeBinary(Format(R"({{"inputs":[{{"name":"x","shape":[2],"datatype":"FP32",)"
                                         R"("parameters":{{"binary_data_size":{}}}}}]}})",
                                         size),
                                  bytes));
  };
  EXPECT_THAT(refusal("4", "1234"), HasSubstr("needs 8 bytes but 4"));
  EXPECT_THAT(refusal("12", "123456789012"), HasSubstr("needs 8 bytes but 12"));
  EXPECT_THAT(refusal("-8", "12345678"), HasSubstr("binary_data_size' is -8"));
  EXPECT_THAT(refusal("8.0", "12345678"), HasSubstr("binary_data_size"));
  EXPECT_THAT(refusal("\"8\"", "12345678"), HasSubstr("\"8\""));
  EXPECT_THAT(refusal("18446744073709551615", "12345678"), HasSubstr("18446744073709551615"));
  EXPECT_THAT(refusal("18446744073709551616", "12345678"), HasSubstr("18446744073709551616"));
}

TEST(RestInferBinary, ChecksTheInnerLengthsOfBytes) {
  const auto decode = [](std::string_view bytes) {
    return DecodeBinary(Format(R"({{"inputs":[{{"name":"x","shape":[2],"datatype":"BYTES",)"
                               R"("parameters":{{"binary_data_size":{}}}}}]}})",
                               bytes.size()),
                        bytes);
  };
  const auto good = decode(std::string_view("\x01\0\0\0a\0\0\0\0", 9));
  ASSERT_TRUE(good) << good.error().message;
  EXPECT_THAT(StringsOf(good), ElementsAre("a", ""));
  EXPECT_THAT(RefusalOf(decode(std::string_view("\xFF\xFF\xFF\xFF"
                                                "a\0\0\0\0",
                                                9))),
              HasSubstr("4294967295"));
  EXPECT_THAT(RefusalOf(decode(std::string_view("\x01\0\0\0a\0\0", 7))), HasSubstr("cut off"));
}

TEST(RestInferBinary, ChecksTheLengthHeaderAgainstTheBody) {
  const Bytes body = ExactBody(R"({"inputs":[]})");
  EXPECT_THAT(RefusalOf(DecodeRestInfer(body, 14)), AllOf(HasSubstr("14"), HasSubstr("13 bytes")));
  EXPECT_THAT(RefusalOf(DecodeRestInfer(body, UINT64_MAX)), HasSubstr("18446744073709551615"));
  EXPECT_THAT(RefusalOf(DecodeRestInfer(body, 0)), HasSubstr("0"));
  EXPECT_THAT(RefusalOf(DecodeRestInfer(body, 12)), Not(IsEmpty()));
  EXPECT_TRUE(DecodeRestInfer(body, 13));
}

TEST(RestInferBinary, TakesExactlyOneSourcePerInput) {
  const auto refusal = [](std::string_view members) {
    return RefusalOf(
        DecodeBinary(Format(R"({{"inputs":[{{"name":"x","shape":[1],"datatype":"UINT8",{}}}]}})", members), "1"));
  };
  EXPECT_THAT(refusal(R"("data":[1],"parameters":{"binary_data_size":1})"), HasSubstr("more than one"));
  EXPECT_THAT(refusal(R"("parameters":{"binary_data_size":1,"shared_memory_region":"r","shared_memory_byte_size":1})"),
              HasSubstr("more than one"));
  EXPECT_THAT(refusal(R"("data":[1],"parameters":{"shared_memory_region":"r","shared_memory_byte_size":1})"),
              HasSubstr("more than one"));
}

TEST(RestInferDecode, RefusesAByteOrderMark) {
  EXPECT_THAT(RefusalOf(DecodeJson("\xEF\xBB\xBF" + OneInput("INT32", "[1]", "[1]"))), HasSubstr("byte-order mark"));
}

TEST(RestInferDecode, WhatIsMadeOfJsonCountsInTheBudgetWhileItLives) {
  for (const auto& [type, data, least] : {std::tuple{"FP64", "[1,2,3,4]", 32U}, {"BYTES", R"(["","a","","b"])", 18U}}) {
    const auto budget = std::make_shared<ByteBudget>(1000);
    auto request = DecodeRestInfer(ExactBody(OneInput(type, "[4]", data)), std::nullopt, 0, budget);
    ASSERT_TRUE(request) << request.error().message;
    EXPECT_GE(budget->used(), least);
    Bytes kept = request->inputs[0].tensor.data;
    request->inputs.clear();
    EXPECT_GE(budget->used(), least);
    kept = {};
    EXPECT_EQ(budget->used(), 0U);
  }
}

TEST(RestInferDecode, WhatTheBudgetHasNoRoomForIsRefusedForNow) {
  const std::string text = "\"" + std::string(500, 'x') + "\"";
  for (const std::string& body : {OneInput("FP64", "[4]", "[1,2,3,4]"), OneInput("BYTES", "[1]", "[" + text + "]"),
                                  OneInput("BYTES", "[9]", R"(["","","","","","","","",""])")}) {
    const auto budget = std::make_shared<ByteBudget>(31);
    const auto request = DecodeRestInfer(ExactBody(body), std::nullopt, 0, budget);
    ASSERT_FALSE(request);
    EXPECT_EQ(request.error().code, ErrorCode::kUnavailable);
    EXPECT_EQ(budget->used(), 0U);
  }
}

TEST(RestInferDecode, ReadsJsonInPlaceWhenToldThatThereIsSlack) {
  const std::string json = OneInput("INT32", "[2]", "[1,2]");
  const Bytes padded = ExactBody(json + std::string(kJsonSlack, '"'));
  const auto result = DecodeRestInfer(padded.Part(0, json.size()), std::nullopt, kJsonSlack);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_THAT(ElementsOf<std::int32_t>(result), ElementsAre(1, 2));
}

}  // namespace
}  // namespace tandem
