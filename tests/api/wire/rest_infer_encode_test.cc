#include "api/wire/rest_infer_encode.h"

#include <cstring>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem {
namespace {

using ::testing::HasSubstr;

template <typename T>
Tensor MakeTensor(std::string name, DataType type, Shape shape, const std::vector<T>& values) {
  AlignedBuffer buffer(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(buffer.data(), values.data(), buffer.size());
  return {std::move(name), type, std::move(shape), Bytes::Own(std::move(buffer))};
}

Tensor MakeStrings(const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& value : values) AppendBytesElement(value, text);
  return MakeTensor("s", DataType::kBytes, {static_cast<std::int64_t>(values.size())},
                    std::vector<char>(text.begin(), text.end()));
}

InferResponse Answer(std::vector<Tensor> outputs) {
  return {.model = "m", .version = "3", .id = "", .outputs = std::move(outputs)};
}

std::string JsonOf(Tensor tensor) {
  const auto encoded = EncodeRestInfer(Answer({std::move(tensor)}), {}, false);
  return encoded ? encoded->json : encoded.error().message;
}

TEST(RestInferEncode, WritesMembersInTheProtocolsOrder) {
  InferResponse response = Answer({MakeTensor<float>("y", DataType::kFp32, {1, 3}, {1.0F, 0.1F, -2.5e-8F})});
  response.id = "a\"b";
  const auto encoded = EncodeRestInfer(response, {}, false);
  ASSERT_TRUE(encoded);
  EXPECT_EQ(encoded->json,
            R"({"model_name":"m","model_version":"3","id":"a\"b","outputs":[{"name":"y","datatype":"FP32",)"
            R"("shape":[1,3],"data":[1,0.1,-2.5e-08]}]})");
  EXPECT_FALSE(encoded->has_binary);
  EXPECT_TRUE(encoded->parts.empty());
}

TEST(RestInferEncode, LeavesOutAnEmptyId) {
  EXPECT_EQ(EncodeRestInfer(Answer({}), {}, false)->json, R"({"model_name":"m","model_version":"3","outputs":[]})");
}

TEST(RestInferEncode, WritesBinaryOutputsAsPartsThatShareTheData) {
  const Tensor tensor = MakeTensor<float>("y", DataType::kFp32, {2}, {1, 2});
  const auto encoded = EncodeRestInfer(Answer({tensor}), {}, true);
  ASSERT_TRUE(encoded);
  EXPECT_THAT(encoded->json, HasSubstr(R"("shape":[2],"parameters":{"binary_data_size":8}})"));
  ASSERT_EQ(encoded->parts.size(), 1U);
  EXPECT_EQ(encoded->parts[0].view.data(), tensor.data.view.data());
  EXPECT_TRUE(encoded->has_binary);
}

TEST(RestInferEncode, EachOutputMayOverrideTheRequestsForm) {
  const Tensor tensor = MakeTensor<std::int8_t>("y", DataType::kInt8, {2}, {-1, 2});
  Tensor other = tensor;
  other.name = "z";
  const std::vector<RequestedOutput> requested = {{.name = "y", .binary = false}, {.name = "z"}};
  const auto encoded = EncodeRestInfer(Answer({tensor, other}), requested, true);
  ASSERT_TRUE(encoded);
  EXPECT_THAT(encoded->json, HasSubstr(R"("name":"y","datatype":"INT8","shape":[2],"data":[-1,2]})"));
  EXPECT_EQ(encoded->parts.size(), 1U);
}

TEST(RestInferEncode, DescribesOutputsInSharedMemoryWithoutTheirData) {
  const std::vector<RequestedOutput> requested = {
      {.name = "y", .shared = SharedRange{.region = "r", .offset = 64, .byte_size = 100}}};
  const auto encoded = EncodeRestInfer(Answer({MakeTensor<float>("y", DataType::kFp32, {2}, {1, 2})}), requested, true);
  ASSERT_TRUE(encoded);
  EXPECT_THAT(encoded->json, HasSubstr(R"("outputs":[{"name":"y","datatype":"FP32","shape":[2]}])"));
  EXPECT_TRUE(encoded->parts.empty());
}

TEST(RestInferEncode, WritesNonFiniteValuesAsTheirTokens) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_THAT(JsonOf(MakeTensor<float>("y", DataType::kFp32, {3}, {std::nanf(""), inf, -inf})),
              HasSubstr("[NaN,Infinity,-Infinity]"));
}

TEST(RestInferEncode, WritesEveryOtherTypeExactly) {
  EXPECT_THAT(JsonOf(MakeTensor<std::uint64_t>("y", DataType::kUint64, {1}, {UINT64_MAX})),
              HasSubstr("[18446744073709551615]"));
  EXPECT_THAT(JsonOf(MakeTensor<std::int64_t>("y", DataType::kInt64, {1}, {INT64_MIN})),
              HasSubstr("[-9223372036854775808]"));
  EXPECT_THAT(JsonOf(MakeTensor<std::uint8_t>("y", DataType::kBool, {2}, {1, 0})), HasSubstr("[true,false]"));
  EXPECT_THAT(JsonOf(MakeTensor<std::uint8_t>("y", DataType::kUint8, {2}, {65, 0})), HasSubstr("[65,0]"));
  EXPECT_THAT(JsonOf(MakeTensor<double>("y", DataType::kFp64, {1}, {0.1})), HasSubstr("[0.1]"));
  EXPECT_THAT(JsonOf(MakeStrings({"a\n", "", "ü"})), HasSubstr(R"(["a\n","","ü"])"));
}

TEST(RestInferEncode, AsksForBinaryWhereJsonCannotHoldTheData) {
  const auto half = EncodeRestInfer(Answer({MakeTensor<std::uint16_t>("y", DataType::kFp16, {1}, {0})}), {}, false);
  ASSERT_FALSE(half);
  EXPECT_EQ(half.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(half.error().message, AllOf(HasSubstr("'y'"), HasSubstr("FP16"), HasSubstr("binary_data")));
  const auto bytes = EncodeRestInfer(Answer({MakeStrings({"\xFF"})}), {}, false);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(bytes.error().message, HasSubstr("binary_data"));
}

}  // namespace
}  // namespace tandem
