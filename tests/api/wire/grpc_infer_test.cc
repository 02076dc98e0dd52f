#include "api/wire/grpc_infer.h"

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/wire/json_text.h"
#include "tests/api/wire/mutation.h"

namespace tandem {
namespace {

using inference::ModelInferRequest;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A request with one input 'x', to be completed by the test.
std::shared_ptr<ModelInferRequest> Request(const std::string& type, const std::vector<std::int64_t>& shape) {
  auto message = std::make_shared<ModelInferRequest>();
  message->set_model_name("m");
  auto& input = *message->add_inputs();
  input.set_name("x");
  input.set_datatype(type);
  input.mutable_shape()->Add(shape.begin(), shape.end());
  return message;
}

std::string Refusal(const std::shared_ptr<ModelInferRequest>& message) {
  const auto result = DecodeGrpcInfer(message);
  if (result || result.error().code != ErrorCode::kInvalidArgument) return "";
  return result.error().message;
}

template <typename T>
std::vector<T> Elements(const std::shared_ptr<ModelInferRequest>& message) {
  const auto result = DecodeGrpcInfer(message);
  EXPECT_TRUE(result) << result.error().message;
  if (!result) return {};
  const auto view = result->inputs.at(0).tensor.data.view;
  std::vector<T> elements(view.size() / sizeof(T));
  if (!view.empty()) std::memcpy(elements.data(), view.data(), view.size());
  return elements;
}

TEST(GrpcInferDecode, RawInputsAreViewsThatKeepTheMessageAlive) {
  auto message = Request("INT16", {2});
  message->set_model_version("4");
  message->set_id("7");
  message->add_raw_input_contents(std::string("\x01\0\x02\0", 4));
  const void* raw = message->raw_input_contents(0).data();
  const std::weak_ptr<ModelInferRequest> watch = message;
  const auto result = DecodeGrpcInfer(std::move(message));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->model, "m");
  EXPECT_EQ(result->version, "4");
  EXPECT_EQ(result->id, "7");
  EXPECT_EQ(static_cast<const void*>(result->inputs[0].tensor.data.view.data()), raw);
  EXPECT_FALSE(watch.expired());
}

TEST(GrpcInferDecode, RawEntriesSkipInputsInSharedMemory) {
  auto message = Request("INT8", {1});
  auto& parameters = *message->mutable_inputs(0)->mutable_parameters();
  parameters["shared_memory_region"].set_string_param("r");
  parameters["shared_memory_byte_size"].set_int64_param(1);
  auto& second = *message->add_inputs();
  second = message->inputs(0);
  second.set_name("y");
  second.clear_parameters();
  message->add_raw_input_contents("b");
  const auto result = DecodeGrpcInfer(message);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->inputs[0].shared->region, "r");
  EXPECT_EQ(result->inputs[1].tensor.data.view[0], std::byte{'b'});
}

TEST(GrpcInferDecode, RefusesRawEntriesThatDoNotMatchTheInputs) {
  auto message = Request("FP32", {2});
  message->add_raw_input_contents("1234");
  EXPECT_THAT(Refusal(message), AllOf(HasSubstr("'x'"), HasSubstr("needs 8 bytes but 4")));
  message->set_raw_input_contents(0, "12345678");
  message->add_raw_input_contents("extra");
  EXPECT_THAT(Refusal(message), HasSubstr("2 entries but 1"));
  message->mutable_raw_input_contents()->RemoveLast();
  message->add_inputs()->CopyFrom(message->inputs(0));
  message->mutable_inputs(1)->set_name("y");
  EXPECT_THAT(Refusal(message), AllOf(HasSubstr("'y'"), HasSubstr("only 1")));
}

TEST(GrpcInferDecode, RefusesContentsBesideRawEntriesOrSharedMemory) {
  auto message = Request("FP32", {1});
  message->mutable_inputs(0)->mutable_contents()->add_fp32_contents(1);
  message->add_raw_input_contents("1234");
  EXPECT_THAT(Refusal(message), HasSubstr("raw_input_contents"));
  message->clear_raw_input_contents();
  auto& parameters = *message->mutable_inputs(0)->mutable_parameters();
  parameters["shared_memory_region"].set_string_param("r");
  parameters["shared_memory_byte_size"].set_int64_param(4);
  EXPECT_THAT(Refusal(message), HasSubstr("shared memory"));
}

TEST(GrpcInferDecode, ConvertsTypedContentsOfEveryType) {
  auto message = Request("BOOL", {2});
  message->mutable_inputs(0)->mutable_contents()->add_bool_contents(true);
  message->mutable_inputs(0)->mutable_contents()->add_bool_contents(false);
  EXPECT_THAT(Elements<std::uint8_t>(message), ElementsAre(1, 0));

  const auto with = [](const std::string& type, auto add, auto value) {
    auto one = Request(type, {1});
    (one->mutable_inputs(0)->mutable_contents()->*add)(value);
    return one;
  };
  using Contents = inference::InferTensorContents;
  EXPECT_THAT(Elements<std::int8_t>(with("INT8", &Contents::add_int_contents, -128)), ElementsAre(-128));
  EXPECT_THAT(Elements<std::int16_t>(with("INT16", &Contents::add_int_contents, -5)), ElementsAre(-5));
  EXPECT_THAT(Elements<std::int32_t>(with("INT32", &Contents::add_int_contents, -5)), ElementsAre(-5));
  EXPECT_THAT(Elements<std::int64_t>(with("INT64", &Contents::add_int64_contents, -5)), ElementsAre(-5));
  EXPECT_THAT(Elements<std::uint8_t>(with("UINT8", &Contents::add_uint_contents, 255)), ElementsAre(255));
  EXPECT_THAT(Elements<std::uint16_t>(with("UINT16", &Contents::add_uint_contents, 9)), ElementsAre(9));
  EXPECT_THAT(Elements<std::uint32_t>(with("UINT32", &Contents::add_uint_contents, UINT32_MAX)),
              ElementsAre(UINT32_MAX));
  EXPECT_THAT(Elements<std::uint64_t>(with("UINT64", &Contents::add_uint64_contents, UINT64_MAX)),
              ElementsAre(UINT64_MAX));
  EXPECT_THAT(Elements<float>(with("FP32", &Contents::add_fp32_contents, 0.5F)), ElementsAre(0.5F));
  EXPECT_THAT(Elements<double>(with("FP64", &Contents::add_fp64_contents, 0.5)), ElementsAre(0.5));

  auto strings = Request("BYTES", {2});
  strings->mutable_inputs(0)->mutable_contents()->add_bytes_contents("a\xFF");
  strings->mutable_inputs(0)->mutable_contents()->add_bytes_contents("");
  const auto result = DecodeGrpcInfer(strings);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_THAT(BytesElements(result->inputs[0].tensor.data.view), ElementsAre("a\xFF", ""));
}

TEST(GrpcInferDecode, RefusesTypedContentsThatDoNotFit) {
  auto range = Request("INT8", {2});
  range->mutable_inputs(0)->mutable_contents()->add_int_contents(1);
  range->mutable_inputs(0)->mutable_contents()->add_int_contents(300);
  EXPECT_THAT(Refusal(range), AllOf(HasSubstr("element 1"), HasSubstr("300"), HasSubstr("INT8")));

  auto field = Request("FP32", {1});
  field->mutable_inputs(0)->mutable_contents()->add_fp64_contents(1);
  EXPECT_THAT(Refusal(field), HasSubstr("fp64_contents"));

  auto count = Request("FP32", {2});
  count->mutable_inputs(0)->mutable_contents()->add_fp32_contents(1);
  EXPECT_THAT(Refusal(count), HasSubstr("needs 2 elements"));
  EXPECT_THAT(Refusal(Request("FP32", {2})), HasSubstr("holds 0"));
  EXPECT_THAT(Refusal(Request("BYTES", {2})), HasSubstr("'x'"));
  EXPECT_THAT(Refusal(Request("FP16", {1})), HasSubstr("raw_input_contents"));
  EXPECT_THAT(Refusal(Request("FP32", {1LL << 62})), HasSubstr("'x'"));
}

TEST(GrpcInferDecode, RefusesBadHeads) {
  EXPECT_THAT(Refusal(Request("FLOAT", {1})), HasSubstr("'FLOAT'"));
  EXPECT_THAT(Refusal(Request("FP32", {-1})), HasSubstr("negative"));
  EXPECT_THAT(Refusal(Request("FP32", std::vector<std::int64_t>(33, 1))), HasSubstr("33 dimensions"));
  EXPECT_THAT(Refusal(Request("FP32", {1LL << 32, 1LL << 32})), HasSubstr("2^63"));
  auto unnamed = Request("FP32", {0});
  unnamed->mutable_inputs(0)->clear_name();
  EXPECT_THAT(Refusal(unnamed), HasSubstr("inputs[0]"));
  auto twice = Request("FP32", {0});
  twice->add_inputs()->CopyFrom(twice->inputs(0));
  EXPECT_THAT(Refusal(twice), HasSubstr("'x' is given twice"));
  auto outputs = Request("FP32", {0});
  outputs->add_outputs()->set_name("y");
  outputs->add_outputs()->set_name("y");
  EXPECT_THAT(Refusal(outputs), HasSubstr("output 'y'"));
  auto many = Request("FP32", {0});
  for (int i = 0; i < 1025; ++i) many->add_outputs()->set_name(std::to_string(i));
  EXPECT_THAT(Refusal(many), HasSubstr("1025"));
}

TEST(GrpcInferDecode, ReadsTheSameParametersAsRest) {
  auto message = Request("FP32", {0});
  auto& parameters = *message->mutable_parameters();
  parameters["priority"].set_uint64_param(3);
  parameters["timeout"].set_int64_param(2000);
  parameters["slo_ms"].set_double_param(1.5);
  parameters["triton_enable_empty_final_response"].set_bool_param(true);
  parameters["sequence_id"].set_string_param("s");
  auto& output = *message->add_outputs();
  output.set_name("y");
  (*output.mutable_parameters())["classification"].set_int64_param(5);
  const auto result = DecodeGrpcInfer(message);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->priority, 3U);
  EXPECT_EQ(result->timeout, std::chrono::microseconds(2000));
  EXPECT_EQ(result->slo, std::chrono::microseconds(1500));
  EXPECT_EQ(result->outputs[0].classification, 5U);

  parameters["timeout"].set_int64_param(-1);
  EXPECT_THAT(Refusal(message), HasSubstr("'timeout' is -1"));
  parameters.erase("timeout");
  parameters["triton_other"].set_bool_param(true);
  EXPECT_THAT(Refusal(message), HasSubstr("triton_other"));
  parameters.erase("triton_other");
  parameters["empty"].Clear();
  EXPECT_THAT(Refusal(message), HasSubstr("'empty' has no value"));
}

TEST(GrpcInferDecode, NoMutationOfARequestGetsThroughUnchecked) {
  auto raw = Request("FP32", {2});
  raw->add_raw_input_contents("12345678");
  (*raw->mutable_parameters())["priority"].set_int64_param(1);
  auto typed = Request("BYTES", {2});
  typed->mutable_inputs(0)->mutable_contents()->add_bytes_contents("a");
  typed->mutable_inputs(0)->mutable_contents()->add_bytes_contents("b");
  typed->add_outputs()->set_name("y");
  const std::string seeds[] = {raw->SerializeAsString(), typed->SerializeAsString()};
  std::mt19937 random(11);
  for (int i = 0; i < 10'000; ++i) {
    auto message = std::make_shared<ModelInferRequest>();
    if (!message->ParseFromString(Mutate(seeds[i % 2], random))) continue;
    const auto result = DecodeGrpcInfer(std::move(message));
    if (!result) {
      ASSERT_EQ(result.error().code, ErrorCode::kInvalidArgument);
      ASSERT_TRUE(IsValidUtf8(result.error().message));
      continue;
    }
    for (const InferInput& input : result->inputs) ASSERT_TRUE(input.shared || CheckTensorData(input.tensor));
  }
}

TEST(GrpcInferEncode, AnswersEveryOutputInRawForm) {
  AlignedBuffer buffer(4);
  std::memcpy(buffer.data(), "\x01\x02\x03\x04", 4);
  const Bytes data = Bytes::Own(std::move(buffer));
  const InferResponse response{.model = "m",
                               .version = "2",
                               .id = "i",
                               .outputs = {{"y", DataType::kInt8, {2, 2}, data}, {"z", DataType::kFp32, {1}, data}}};
  const std::vector<RequestedOutput> requested = {
      {.name = "y"}, {.name = "z", .shared = SharedRange{.region = "r", .offset = 8, .byte_size = 16}}};
  inference::ModelInferResponse message;
  ASSERT_TRUE(EncodeGrpcInfer(response, requested, message));
  EXPECT_EQ(message.model_name(), "m");
  EXPECT_EQ(message.model_version(), "2");
  EXPECT_EQ(message.id(), "i");
  ASSERT_EQ(message.outputs_size(), 2);
  EXPECT_EQ(message.outputs(0).datatype(), "INT8");
  EXPECT_THAT(message.outputs(0).shape(), ElementsAre(2, 2));
  EXPECT_THAT(message.raw_output_contents(), ElementsAre("\x01\x02\x03\x04", ""));
  EXPECT_EQ(message.outputs(1).parameters().at("shared_memory_region").string_param(), "r");
  EXPECT_EQ(message.outputs(1).parameters().at("shared_memory_offset").int64_param(), 8);
  EXPECT_EQ(message.outputs(1).parameters().at("shared_memory_byte_size").int64_param(), 4);
}

}  // namespace
}  // namespace tandem
