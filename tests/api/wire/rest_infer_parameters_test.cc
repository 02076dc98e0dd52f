#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/format.h"
#include "tests/api/wire/rest_bodies.h"

namespace tandem {
namespace {

using std::chrono::microseconds;
using ::testing::HasSubstr;

Result<InferRequest> WithParameters(std::string_view parameters) {
  return DecodeJson(Format(R"({{"inputs":[],"parameters":{{{}}}}})", parameters));
}

Result<InferRequest> WithOutput(std::string_view parameters) {
  return DecodeJson(Format(R"({{"inputs":[],"outputs":[{{"name":"y","parameters":{{{}}}}}]}})", parameters));
}

Result<InferRequest> WithInput(std::string_view parameters) {
  return DecodeJson(
      Format(R"({{"inputs":[{{"name":"x","shape":[2],"datatype":"FP32","parameters":{{{}}}}}]}})", parameters));
}

TEST(RestParameters, ReadsPriorityTimeoutAndSlo) {
  const auto result = WithParameters(R"("priority":2,"timeout":1500,"slo_ms":2.5,"binary_data_output":true)");
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->priority, 2U);
  EXPECT_EQ(result->timeout, microseconds(1500));
  EXPECT_EQ(result->slo, microseconds(2500));
  EXPECT_TRUE(result->binary_output);
  EXPECT_EQ(WithParameters(R"("priority":18446744073709551615)")->priority, UINT64_MAX);
}

TEST(RestParameters, ATimeoutOfZeroMeansNone) {
  EXPECT_EQ(WithParameters(R"("timeout":0)")->timeout, std::nullopt);
}

TEST(RestParameters, AnEndlessTimeoutStaysWithinWhatClocksCanAdd) {
  const auto result = WithParameters(R"("timeout":18446744073709551615)");
  ASSERT_TRUE(result);
  EXPECT_GT(*result->timeout, std::chrono::hours(24 * 300));
  EXPECT_LT(*result->timeout, std::chrono::hours(24 * 400));
}

TEST(RestParameters, RefusesValuesOutOfRangeAndNamesThem) {
  EXPECT_THAT(RefusalOf(WithParameters(R"("priority":-1)")), HasSubstr("'priority' is -1"));
  EXPECT_THAT(RefusalOf(WithParameters(R"("priority":"1")")), HasSubstr("'priority' is \"1\""));
  EXPECT_THAT(RefusalOf(WithParameters(R"("priority":1.5)")), HasSubstr("'priority' is 1.5"));
  EXPECT_THAT(RefusalOf(WithParameters(R"("timeout":-5)")), HasSubstr("'timeout' is -5"));
  EXPECT_THAT(RefusalOf(WithParameters(R"("timeout":true)")), HasSubstr("'timeout' is true"));
  EXPECT_THAT(RefusalOf(WithParameters(R"("timeout":1e3)")), HasSubstr("'timeout'"));
  EXPECT_THAT(RefusalOf(WithParameters(R"("slo_ms":0)")), HasSubstr("'slo_ms' is 0"));
  EXPECT_THAT(RefusalOf(WithParameters(R"("slo_ms":-1)")), HasSubstr("'slo_ms' is -1"));
  EXPECT_THAT(RefusalOf(WithParameters(R"("slo_ms":86400001)")), HasSubstr("86400001"));
  EXPECT_THAT(RefusalOf(WithParameters(R"("slo_ms":"5")")), HasSubstr("'slo_ms'"));
  EXPECT_THAT(RefusalOf(WithParameters(R"("slo_ms":NaN)")), HasSubstr("slo_ms"));
  EXPECT_THAT(RefusalOf(WithParameters(R"("slo_ms":1e999)")), HasSubstr("slo_ms"));
  EXPECT_THAT(RefusalOf(WithParameters(R"("binary_data_output":1)")), HasSubstr("'binary_data_output' is 1"));
  EXPECT_TRUE(WithParameters(R"("slo_ms":86400000)"));
}

TEST(RestParameters, AcceptsSequenceParameters) {
  EXPECT_TRUE(WithParameters(R"("sequence_id":4,"sequence_start":true,"sequence_end":false)"));
  EXPECT_TRUE(WithParameters(R"("sequence_id":"four")"));
  EXPECT_THAT(RefusalOf(WithParameters(R"("sequence_id":true)")), HasSubstr("sequence_id"));
  EXPECT_THAT(RefusalOf(WithParameters(R"("sequence_id":-1)")), HasSubstr("'sequence_id' is -1"));
  EXPECT_THAT(RefusalOf(WithParameters(R"("sequence_start":1)")), HasSubstr("sequence_start"));
}

TEST(RestParameters, RefusesMoreMembersThanAnybodyNeeds) {
  const auto members = [](int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += Format("{}\"p{}\":1", i == 0 ? "" : ",", i);
    return text;
  };
  EXPECT_TRUE(WithParameters(members(1024)));
  EXPECT_THAT(RefusalOf(WithParameters(members(1025))), HasSubstr("parameters has more than 1024 members"));
  EXPECT_THAT(RefusalOf(DecodeJson("{" + members(1025) + "}")), HasSubstr("1024 members"));
}

TEST(RestParameters, RefusesReservedKeys) {
  EXPECT_THAT(RefusalOf(WithParameters(R"("triton_enable_empty_final_response":true)")),
              HasSubstr("triton_enable_empty_final_response"));
  EXPECT_THAT(RefusalOf(WithParameters(R"("triton_x":1)")), HasSubstr("triton_x"));
}

TEST(RestParameters, IgnoresOtherKeysButChecksTheirTypes) {
  EXPECT_TRUE(WithParameters(R"("mine":"a","other":1.5,"third":false,"large":18446744073709551615)"));
  EXPECT_THAT(RefusalOf(WithParameters(R"("mine":[])")), HasSubstr("parameters.mine is an array"));
  EXPECT_THAT(RefusalOf(WithParameters(R"("mine":{})")), HasSubstr("parameters.mine is an object"));
  EXPECT_THAT(RefusalOf(WithParameters(R"("mine":99999999999999999999)")), HasSubstr("99999999999999999999"));
}

TEST(RestParameters, ReadsOutputParameters) {
  const auto result = WithOutput(R"("binary_data":false,"classification":3)");
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->outputs[0].binary, false);
  EXPECT_EQ(result->outputs[0].classification, 3U);
  EXPECT_THAT(RefusalOf(WithOutput(R"("classification":-1)")), HasSubstr("outputs[0]"));
  EXPECT_THAT(RefusalOf(WithOutput(R"("classification":4294967296)")), HasSubstr("4294967296"));
  EXPECT_THAT(RefusalOf(WithOutput(R"("binary_data":"yes")")), HasSubstr("binary_data"));
}

TEST(RestParameters, ReadsSharedMemoryOfInputsAndOutputs) {
  const auto input = WithInput(R"("shared_memory_region":"r","shared_memory_offset":16,"shared_memory_byte_size":8)");
  ASSERT_TRUE(input) << input.error().message;
  ASSERT_TRUE(input->inputs[0].shared);
  EXPECT_EQ(input->inputs[0].shared->region, "r");
  EXPECT_EQ(input->inputs[0].shared->offset, 16U);
  EXPECT_EQ(input->inputs[0].shared->byte_size, 8U);
  const auto output = WithOutput(R"("shared_memory_region":"r","shared_memory_byte_size":8)");
  ASSERT_TRUE(output) << output.error().message;
  EXPECT_EQ(output->outputs[0].shared->offset, 0U);
}

TEST(RestParameters, RefusesHalfDescribedSharedMemory) {
  EXPECT_THAT(RefusalOf(WithInput(R"("shared_memory_region":"r")")), HasSubstr("shared_memory_byte_size"));
  EXPECT_THAT(RefusalOf(WithInput(R"("shared_memory_byte_size":8)")), HasSubstr("shared_memory_region"));
  EXPECT_THAT(RefusalOf(WithInput(R"("shared_memory_offset":8)")), HasSubstr("shared_memory_region"));
  EXPECT_THAT(RefusalOf(WithInput(R"("shared_memory_region":7,"shared_memory_byte_size":8)")), HasSubstr("is 7"));
  EXPECT_THAT(RefusalOf(WithInput(R"("shared_memory_region":"r","shared_memory_byte_size":-8)")), HasSubstr("-8"));
  EXPECT_THAT(RefusalOf(WithInput(R"("shared_memory_region":"","shared_memory_byte_size":8)")), HasSubstr("empty"));
}

TEST(RestParameters, RefusesClassificationIntoSharedMemory) {
  EXPECT_THAT(RefusalOf(WithOutput(R"("classification":1,"shared_memory_region":"r","shared_memory_byte_size":8)")),
              HasSubstr("classification"));
}

}  // namespace
}  // namespace tandem
