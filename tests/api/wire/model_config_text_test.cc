#include "api/wire/model_config_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/wire/json_text.h"
#include "tests/api/wire/mutation.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr std::string_view kTypical = R"(
name: "resnet"   # a comment { with a brace
platform: "onnxruntime_onnx"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 format: FORMAT_NCHW dims: [ 3, 224, -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 1000 ] label_filename: "labels.txt" reshape { shape: [ 1000, 1 ] } } ]
version_policy: { latest { num_versions: 2 } }
instance_group [ { count: 2 kind: KIND_GPU gpus: [ 0, 1 ] } ]
dynamic_batching {
  preferred_batch_size: [ 4, 8 ]
  max_queue_delay_microseconds: 100
  priority_levels: 2
  default_queue_policy { timeout_action: REJECT default_timeout_microseconds: 5000 max_queue_size: 10 }
  priority_queue_policy { key: 2 value { max_queue_size: 3 } }
}
optimization { execution_accelerators {
  gpu_execution_accelerator : [ { name : "tensorrt" parameters { key: "precision_mode" value: "FP16" } } ] } }
parameters { key: "slo_ms" value: { string_value: "25" } }
model_warmup [ { name: "w" batch_size: 1
  inputs { key: "x" value: { data_type: TYPE_FP32 dims: [ 3, 224, 224 ] zero_data: true } } } ]
model_transaction_policy { decoupled: false }
response_cache { enable: true }
)";

TEST(ModelConfigPbtxt, ReadsWhatRealFilesHold) {
  const auto parsed = ParseModelConfigPbtxt(kTypical);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_THAT(parsed->warnings, IsEmpty());
  const auto& config = parsed->config;
  EXPECT_EQ(config.name(), "resnet");
  EXPECT_EQ(config.max_batch_size(), 8);
  EXPECT_THAT(config.input(0).dims(), ElementsAre(3, 224, -1));
  EXPECT_EQ(config.version_policy().latest().num_versions(), 2U);
  EXPECT_EQ(config.instance_group(0).kind(), inference::ModelInstanceGroup::KIND_GPU);
  EXPECT_THAT(config.dynamic_batching().preferred_batch_size(), ElementsAre(4, 8));
  EXPECT_EQ(config.dynamic_batching().priority_queue_policy().at(2).max_queue_size(), 3U);
  EXPECT_EQ(
      config.optimization().execution_accelerators().gpu_execution_accelerator(0).parameters().at("precision_mode"),
      "FP16");
  EXPECT_EQ(config.parameters().at("slo_ms").string_value(), "25");
  EXPECT_TRUE(config.model_warmup(0).inputs().at("x").zero_data());
}

TEST(ModelConfigPbtxt, WarnsOfUnknownFieldsWithTheirPlace) {
  const auto parsed = ParseModelConfigPbtxt("name: \"m\"\nfuture_field { a: 1 }\nmax_batch_size: 4\n");
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->config.max_batch_size(), 4);
  EXPECT_THAT(parsed->warnings, ElementsAre(AllOf(HasSubstr("line 2"), HasSubstr("future_field"))));
}

TEST(ModelConfigPbtxt, NamesLineAndColumnOfMalformedText) {
  const auto parsed = ParseModelConfigPbtxt("name: \"m\"\nmax_batch_size: eight\n");
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(parsed.error().message, AllOf(HasSubstr("line 2"), HasSubstr("column")));
  EXPECT_THAT(ParseModelConfigPbtxt("input [ { data_type: TYPE_FLOAT } ]").error().message, HasSubstr("TYPE_FLOAT"));
  EXPECT_FALSE(ParseModelConfigPbtxt("name: \"a\" name: \"b\""));
  EXPECT_FALSE(ParseModelConfigPbtxt("input {"));
}

TEST(ModelConfigPbtxt, AnEmptyFileIsAnEmptyConfiguration) {
  EXPECT_TRUE(ParseModelConfigPbtxt(""));
}

TEST(ModelConfigPbtxt, BoundsSizeAndNesting) {
  EXPECT_FALSE(ParseModelConfigPbtxt(std::string(kMaxModelConfigBytes + 1, ' ')));
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "a{";
  EXPECT_THAT(ParseModelConfigPbtxt(deep).error().message, HasSubstr("64 levels"));
  EXPECT_TRUE(ParseModelConfigPbtxt("name: \"" + std::string(200, '{') + "\""));
}

TEST(ModelConfigJson, ReadsNamesInBothSpellings) {
  const auto parsed = ParseModelConfigJson(
      R"({"name":"m","maxBatchSize":8,"input":[{"name":"x","data_type":"TYPE_FP32","dims":["3",4]}],
          "parameters":{"slo_ms":{"string_value":"5"}}})");
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_THAT(parsed->warnings, IsEmpty());
  EXPECT_EQ(parsed->config.max_batch_size(), 8);
  EXPECT_THAT(parsed->config.input(0).dims(), ElementsAre(3, 4));
}

TEST(ModelConfigJson, WarnsOfUnknownMembersWithTheirPath) {
  const auto parsed = ParseModelConfigJson(
      R"({"name":"m","future":{"a":1},"input":[{"name":"x"},{"colour":"red"}],
          "parameters":{"k":{"string_value":"v","extra":2}}})");
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_THAT(parsed->warnings, testing::UnorderedElementsAre(HasSubstr("'future'"), HasSubstr("'input[1].colour'"),
                                                              HasSubstr("'parameters[\"k\"].extra'")));
}

TEST(ModelConfigJson, RefusesMalformedText) {
  for (const std::string_view text :
       {"", "[]", "null", "{", "{\"name\":}", "{\"name\":5,}", "{\"name\":\"a\",\"name\":\"b\"}", "{\"name\":\"m\"} x",
        "{\"max_batch_size\":\"eight\"}", "{\"input\":{\"dims\":1.5}}", "{\"name\":\"\xFF\"}",
        "{\"input\":[{\"data_type\":\"TYPE_FLOAT\"}]}"}) {
    const auto parsed = ParseModelConfigJson(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(parsed.error().message, Not(IsEmpty()));
  }
}

TEST(ModelConfigJson, BoundsSizeAndNesting) {
  EXPECT_FALSE(ParseModelConfigJson("{\"name\":\"" + std::string(kMaxModelConfigBytes, 'a') + "\"}"));
  EXPECT_THAT(ParseModelConfigJson("{\"a\":" + std::string(100'000, '[')).error().message, HasSubstr("64 levels"));
}

TEST(ModelConfigShown, WritesIntegersAsNumbersAndDefaultsInFull) {
  const auto parsed = ParseModelConfigPbtxt(kTypical);
  ASSERT_TRUE(parsed);
  const std::string json = ModelConfigJson(parsed->config);
  EXPECT_THAT(json, HasSubstr(R"("dims":[3,224,-1])"));
  EXPECT_THAT(json, HasSubstr(R"("max_queue_delay_microseconds":100)"));
  EXPECT_THAT(json, HasSubstr(R"("data_type":"TYPE_FP32")"));
  EXPECT_THAT(json, HasSubstr(R"("priority_queue_policy":{"2":{)"));
  EXPECT_THAT(json, HasSubstr(R"("parameters":{"slo_ms":{"string_value":"25"}})"));
  EXPECT_THAT(json, HasSubstr(R"("preserve_ordering":false)"));
  EXPECT_THAT(json, Not(HasSubstr("sequence_batching")));
}

TEST(ModelConfigShown, ReadsBackAsTheSameConfiguration) {
  const auto parsed = ParseModelConfigPbtxt(kTypical);
  ASSERT_TRUE(parsed);
  const auto again = ParseModelConfigJson(ModelConfigJson(parsed->config));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_THAT(again->warnings, IsEmpty());
  EXPECT_EQ(ModelConfigJson(again->config), ModelConfigJson(parsed->config));
}

TEST(ModelConfigShown, NoMutationOfAFileBreaksTheParsers) {
  const std::string json = ModelConfigJson(ParseModelConfigPbtxt(kTypical)->config);
  std::mt19937 random(5);
  for (int i = 0; i < 2'000; ++i) {
    const auto parsed = i % 2 == 0 ? ParseModelConfigPbtxt(Mutate(std::string(kTypical), random))
                                   : ParseModelConfigJson(Mutate(json, random));
    if (parsed) {
      ASSERT_FALSE(ModelConfigJson(parsed->config).empty());
    } else {
      ASSERT_EQ(parsed.error().code, ErrorCode::kInvalidArgument);
      ASSERT_TRUE(IsValidUtf8(parsed.error().message));
    }
  }
}

TEST(ConfigDataType, MapsBothWays) {
  for (int i = 0; i < kDataTypeCount; ++i) {
    const auto type = static_cast<DataType>(i);
    EXPECT_EQ(FromConfigDataType(ToConfigDataType(type)), type);
  }
  EXPECT_EQ(ToConfigDataType(DataType::kBytes), inference::TYPE_STRING);
  EXPECT_EQ(ToConfigDataType(DataType::kBf16), inference::TYPE_BF16);
  EXPECT_EQ(FromConfigDataType(inference::TYPE_INVALID), std::nullopt);
}

}  // namespace
}  // namespace tandem
