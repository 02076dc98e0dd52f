#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/wire/json_text.h"
#include "tests/api/wire/rest_bodies.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

template <typename T>
std::vector<T> Read(std::string_view type, std::string_view shape, std::string_view data) {
  const auto result = DecodeJson(OneInput(type, shape, data));
  EXPECT_TRUE(result) << result.error().message;
  return ElementsOf<T>(result);
}

std::string Refusal(std::string_view type, std::string_view shape, std::string_view data) {
  return RefusalOf(DecodeJson(OneInput(type, shape, data)));
}

TEST(JsonData, ReadsFlatAndNestedArraysAlike) {
  EXPECT_THAT(Read<float>("FP32", "[2,2]", "[1,2.5,-3e1,4]"), ElementsAre(1.0F, 2.5F, -30.0F, 4.0F));
  EXPECT_THAT(Read<float>("FP32", "[2,2]", "[[1,2.5],[-3e1,4]]"), ElementsAre(1.0F, 2.5F, -30.0F, 4.0F));
  EXPECT_THAT(Read<float>("FP32", "[1,2,2]", "[[1, 2, 3, 4]]"), ElementsAre(1.0F, 2.0F, 3.0F, 4.0F));
  EXPECT_THAT(Read<std::int32_t>("INT32", "[]", "[7]"), ElementsAre(7));
}

TEST(JsonData, ReadsEmptyTensors) {
  EXPECT_THAT(Read<float>("FP32", "[0]", "[]"), IsEmpty());
  EXPECT_THAT(Read<float>("FP32", "[2,0]", "[[],[]]"), IsEmpty());
  EXPECT_THAT(Read<float>("FP32", "[0,3]", "[ ]"), IsEmpty());
}

TEST(JsonData, ReadsTheLimitsOfEveryIntegerType) {
  EXPECT_THAT(Read<std::int8_t>("INT8", "[2]", "[-128,127]"), ElementsAre(-128, 127));
  EXPECT_THAT(Read<std::uint8_t>("UINT8", "[2]", "[0,255]"), ElementsAre(0, 255));
  EXPECT_THAT(Read<std::int16_t>("INT16", "[2]", "[-32768,32767]"), ElementsAre(-32768, 32767));
  EXPECT_THAT(Read<std::uint16_t>("UINT16", "[1]", "[65535]"), ElementsAre(65535));
  EXPECT_THAT(Read<std::int32_t>("INT32", "[2]", "[-2147483648,2147483647]"), ElementsAre(INT32_MIN, INT32_MAX));
  EXPECT_THAT(Read<std::uint32_t>("UINT32", "[1]", "[4294967295]"), ElementsAre(UINT32_MAX));
  EXPECT_THAT(Read<std::int64_t>("INT64", "[2]", "[-9223372036854775808,9223372036854775807]"),
              ElementsAre(INT64_MIN, INT64_MAX));
  EXPECT_THAT(Read<std::uint64_t>("UINT64", "[1]", "[18446744073709551615]"), ElementsAre(UINT64_MAX));
}

TEST(JsonData, RefusesIntegersThatDoNotFitAndNamesThem) {
  EXPECT_THAT(Refusal("INT8", "[3]", "[1,2,300]"),
              AllOf(HasSubstr("'x'"), HasSubstr("element 2"), HasSubstr("300"), HasSubstr("INT8")));
  EXPECT_THAT(Refusal("UINT8", "[1]", "[-1]"), AllOf(HasSubstr("element 0"), HasSubstr("-1"), HasSubstr("UINT8")));
  EXPECT_THAT(Refusal("UINT64", "[1]", "[-1]"), HasSubstr("-1"));
  EXPECT_THAT(Refusal("INT64", "[1]", "[9223372036854775808]"), HasSubstr("9223372036854775808"));
  EXPECT_THAT(Refusal("UINT64", "[1]", "[18446744073709551616]"), HasSubstr("18446744073709551616"));
  EXPECT_THAT(Refusal("INT32", "[1]", "[1.5]"), HasSubstr("1.5"));
  EXPECT_THAT(Refusal("INT32", "[1]", "[1e2]"), HasSubstr("1e2"));
}

TEST(JsonData, RefusesElementsOfAnotherJsonType) {
  EXPECT_THAT(Refusal("FP32", "[1]", R"(["1"])"), HasSubstr("\"1\""));
  EXPECT_THAT(Refusal("FP32", "[1]", "[true]"), HasSubstr("true"));
  EXPECT_THAT(Refusal("FP32", "[1]", "[null]"), HasSubstr("null"));
  EXPECT_THAT(Refusal("FP32", "[1]", "[{}]"), HasSubstr("an object"));
  EXPECT_THAT(Refusal("INT32", "[1]", "[false]"), HasSubstr("false"));
  EXPECT_THAT(Refusal("BYTES", "[1]", "[1]"), HasSubstr("strings"));
  EXPECT_THAT(Refusal("BOOL", "[1]", "[2]"), HasSubstr("true, false, 0 or 1"));
  EXPECT_THAT(Refusal("FP32", "[1]", "1.0"), HasSubstr("inputs[0].data"));
  EXPECT_THAT(Refusal("FP32", "[1]", R"("text")"), HasSubstr("must be an array"));
}

TEST(JsonData, ReadsTheNonFiniteLiteralsThatTritonReads) {
  const auto values = Read<float>("FP32", "[5]", "[NaN, Inf,Infinity,-Inf , -Infinity]");
  ASSERT_EQ(values.size(), 5U);
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(std::isnan(values[0]));
  EXPECT_THAT(std::vector(values.begin() + 1, values.end()), ElementsAre(inf, inf, -inf, -inf));
  EXPECT_TRUE(std::isnan(Read<double>("FP64", "[1]", "[NaN]").at(0)));
  const auto negative = Read<float>("FP32", "[1]", "[-NaN]");
  ASSERT_EQ(negative.size(), 1U);
  EXPECT_TRUE(std::isnan(negative[0]));
  EXPECT_THAT(Refusal("INT32", "[1]", "[NaN]"), HasSubstr("NaN"));
  EXPECT_THAT(Refusal("FP32", "[1]", "[nan]"), HasSubstr("nan"));
  EXPECT_THAT(Refusal("FP32", "[1]", "[Infinit]"), HasSubstr("Infinit"));
}

TEST(JsonData, RoundsFloatsOnceAndRefusesThoseThatOverflow) {
  EXPECT_THAT(Read<float>("FP32", "[2]", "[3.4028235e38,1e-45]"), ElementsAre(3.4028235e38F, 1e-45F));
  // Just above halfway between 1 and its successor; as a double it would be exactly halfway and round down to 1.
  EXPECT_THAT(Read<float>("FP32", "[1]", "[1.00000005960464477540]"), ElementsAre(std::nextafter(1.0F, 2.0F)));
  EXPECT_THAT(Read<float>("FP32", "[2]", "[1e-400,-0.0]"), ElementsAre(0.0F, 0.0F));
  EXPECT_TRUE(std::signbit(Read<float>("FP32", "[1]", "[-0]").at(0)));
  EXPECT_THAT(Refusal("FP32", "[1]", "[1e39]"), HasSubstr("1e39"));
  EXPECT_THAT(Refusal("FP32", "[1]", "[1e400]"), HasSubstr("1e400"));
  EXPECT_THAT(Refusal("FP64", "[1]", "[-1e400]"), HasSubstr("-1e400"));
}

TEST(JsonData, ReadsBooleansAndTheirDigits) {
  EXPECT_THAT(Read<std::uint8_t>("BOOL", "[4]", "[true,false,1,0]"), ElementsAre(1, 0, 1, 0));
}

TEST(JsonData, ReadsStringsWithEscapes) {
  const auto result = DecodeJson(OneInput("BYTES", "[4]", R"(["", "a\"\\\/\n", "\u0000\u00fc", "\ud83d\ude42"])"));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_THAT(StringsOf(result), ElementsAre("", "a\"\\/\n", std::string("\0ü", 3), "🙂"));
  EXPECT_NE(Refusal("BYTES", "[1]", R"(["\ud800"])"), "");
  EXPECT_NE(Refusal("BYTES", "[1]", R"(["\q"])"), "");
}

TEST(JsonData, SaysThatHalfPrecisionNeedsTheBinaryForm) {
  EXPECT_THAT(Refusal("FP16", "[1]", "[1]"), HasSubstr("binary_data_size"));
  EXPECT_THAT(Refusal("BF16", "[1]", "[1]"), HasSubstr("binary_data_size"));
}

TEST(JsonData, RefusesCountsThatDisagreeWithTheShape) {
  EXPECT_THAT(Refusal("FP32", "[2,3]", "[1,2,3,4,5]"), AllOf(HasSubstr("[2,3]"), HasSubstr("6"), HasSubstr("5")));
  EXPECT_THAT(Refusal("FP32", "[2]", "[1,2,3]"), HasSubstr("more than 2"));
  EXPECT_THAT(Refusal("FP32", "[1]", "[]"), HasSubstr("holds 0"));
  EXPECT_THAT(Refusal("FP32", "[0]", "[1]"), HasSubstr("more than 0"));
}

TEST(JsonData, RefusesNestingThatDisagreesWithTheShape) {
  EXPECT_THAT(Refusal("FP32", "[2,2]", "[[1,2,3],[4]]"), HasSubstr("[2,2]"));
  EXPECT_THAT(Refusal("FP32", "[2,3]", "[[1,2],[3,4],[5,6]]"), HasSubstr("[2,3]"));
  EXPECT_THAT(Refusal("FP32", "[2,2]", "[[1,2],3,4]"), HasSubstr("mixes"));
  EXPECT_THAT(Refusal("FP32", "[2]", "[1,[2]]"), HasSubstr("an array"));
  EXPECT_THAT(Refusal("FP32", "[2]", "[[1],[2]]"), HasSubstr("deeper"));
  EXPECT_THAT(Refusal("FP32", "[2,2,2]", "[[1,2,3,4],[[5,6],[7,8]]]"), HasSubstr("levels deep in one place"));
}

TEST(JsonData, RefusesVeryDeepNestingCleanly) {
  EXPECT_THAT(Refusal("FP32", "[1]", std::string(100'000, '[') + "1" + std::string(100'000, ']')), HasSubstr("deeper"));
  EXPECT_NE(Refusal("FP32", "[1]", std::string(100'000, '[')), "");
  const std::string shape = "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]";
  EXPECT_THAT(Read<float>("FP32", shape, std::string(32, '[') + "1" + std::string(32, ']')), ElementsAre(1.0F));
}

TEST(JsonData, HugeShapesAreRefusedWithoutAllocating) {
  EXPECT_THAT(Refusal("FP32", "[1099511627776]", "[1]"), HasSubstr("1099511627776"));
  EXPECT_THAT(Refusal("FP64", "[4611686018427387904]", "[1]"), HasSubstr("4611686018427387904"));
  EXPECT_THAT(Refusal("FP32", "[4294967296,4294967296]", "[1]"), HasSubstr("2^63"));
}

TEST(JsonData, MayComeBeforeTheMembersThatDescribeIt) {
  const auto result =
      DecodeJson(R"({"inputs":[{"data":[[1,2],[3,4]],"datatype":"INT32","shape":[2,2],"name":"x"}],"id":"7"})");
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_THAT(ElementsOf<std::int32_t>(result), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(result->id, "7");
  EXPECT_THAT(RefusalOf(DecodeJson(R"({"inputs":[{"data":[1,2,],"datatype":"INT32","shape":[2],"name":"x"}]})")),
              Not(IsEmpty()));
  EXPECT_THAT(RefusalOf(DecodeJson(R"({"inputs":[{"data":[1}],"datatype":"INT32","shape":[1],"name":"x"}]})")),
              Not(IsEmpty()));
}

TEST(JsonData, RefusesMalformedArrays) {
  for (const std::string_view data : {"[1,]", "[,1]", "[1 1]", "[1,,1]", "[01]", "[1.]", "[.5]", "[+1]", "[1e]",
                                      "[0x1]", "[1", "[1}", "[--1]", "[1.5.2]", "[1a]"}) {
    EXPECT_THAT(Refusal("FP32", "[1]", data), Not(IsEmpty())) << data;
  }
}

TEST(JsonData, EchoesLittleOfWhatWasSent) {
  const std::string message = Refusal("FP32", "[1]", "[\"" + std::string(10'000, 'a') + "\"]");
  EXPECT_LT(message.size(), 400U);
  EXPECT_TRUE(IsValidUtf8(message));
}

}  // namespace
}  // namespace tandem
