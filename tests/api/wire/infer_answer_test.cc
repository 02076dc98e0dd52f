#include "api/wire/infer_answer.h"

#include <cstring>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/wire/proto/inference.pb.h"
#include "api/wire/rest_infer_encode.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <typename T>
std::vector<T> Values(const Tensor& tensor) {
  std::vector<T> values(tensor.data.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), tensor.data.view.data(), tensor.data.size());
  return values;
}

Tensor Floats(const std::string& name, const std::vector<float>& values) {
  AlignedBuffer buffer(values.size() * sizeof(float));
  std::memcpy(buffer.data(), values.data(), buffer.size());
  return {.name = name,
          .type = DataType::kFp32,
          .shape = {1, static_cast<std::int64_t>(values.size())},
          .data = Bytes::Own(std::move(buffer))};
}

// As our own server writes it.
std::string RestAnswer(bool binary) {
  InferResponse response;
  response.model = "m} \"quoted\\";
  response.version = "1";
  response.outputs.push_back(Floats("y", {1.5F, -0.1F}));
  response.outputs.push_back(Floats("z", {7}));
  const auto encoded = EncodeRestInfer(response, {}, binary);
  EXPECT_TRUE(encoded);
  std::string body = encoded->json;
  for (const Bytes& part : encoded->parts) body.append(reinterpret_cast<const char*>(part.view.data()), part.size());
  return body;
}

TEST(DecodeRestAnswer, ReadsWhatTheServerWrites) {
  for (const bool binary : {true, false}) {
    const std::string body = RestAnswer(binary);
    const auto outputs = DecodeRestAnswer(body);
    ASSERT_TRUE(outputs) << outputs.error().message;
    ASSERT_EQ(outputs->size(), 2u);
    EXPECT_EQ((*outputs)[0].name, "y");
    EXPECT_THAT((*outputs)[0].shape, ElementsAre(1, 2));
    EXPECT_THAT(Values<float>((*outputs)[0]), ElementsAre(1.5F, -0.1F));
    EXPECT_THAT(Values<float>((*outputs)[1]), ElementsAre(7));
  }
}

TEST(DecodeRestAnswer, ReadsMembersInAnyOrder) {
  const auto outputs = DecodeRestAnswer(
      " {\"id\": \"x\", \"outputs\": [{\"data\": [[1, 2]], \"parameters\": {\"other\": 5}, \"shape\": [1, 2], "
      "\"datatype\": \"INT32\", \"name\": \"a\"}]}\n");
  ASSERT_TRUE(outputs) << outputs.error().message;
  EXPECT_THAT(Values<std::int32_t>(outputs->front()), ElementsAre(1, 2));
}

TEST(DecodeRestAnswer, SaysWhatIsWrong) {
  const std::string good = RestAnswer(true);
  for (const auto& [body, word] : std::vector<std::pair<std::string, std::string>>{
           {"", "not JSON"},
           {"oops", "not JSON"},
           {"{\"outputs\":", "not JSON"},
           {"{}", "outputs"},
           {"{\"outputs\": 5}", "outputs"},
           {"{\"outputs\": [{}]}", "outputs[0]"},
           {R"({"outputs":[{"name":"y","datatype":"ODD","shape":[1],"data":[1]}]})", "ODD"},
           {R"({"outputs":[{"name":"y","datatype":"FP32","shape":[-1],"data":[1]}]})", "shape"},
           {R"({"outputs":[{"name":"y","datatype":"FP32","shape":[2],"data":[1]}]})", "y"},
           {R"({"outputs":[{"name":"y","datatype":"FP32","shape":[1]}]})", "no data"},
           {good.substr(0, good.size() - 1), "binary_data_size"},
           {good + "x", "surplus"}}) {
    const auto outputs = DecodeRestAnswer(body);
    ASSERT_FALSE(outputs) << body;
    EXPECT_THAT(outputs.error().message, HasSubstr(word)) << body;
  }
}

TEST(DecodeGrpcAnswer, ReadsRawAndTypedContents) {
  inference::ModelInferResponse message;
  auto& y = *message.add_outputs();
  y.set_name("y");
  y.set_datatype("INT32");
  y.add_shape(2);
  const std::int32_t values[] = {3, -4};
  message.add_raw_output_contents(reinterpret_cast<const char*>(values), sizeof values);
  auto outputs = DecodeGrpcAnswer(message.SerializeAsString());
  ASSERT_TRUE(outputs) << outputs.error().message;
  EXPECT_THAT(Values<std::int32_t>(outputs->front()), ElementsAre(3, -4));

  message.clear_raw_output_contents();
  y.mutable_contents()->add_int_contents(5);
  y.mutable_contents()->add_int_contents(6);
  outputs = DecodeGrpcAnswer(message.SerializeAsString());
  ASSERT_TRUE(outputs) << outputs.error().message;
  EXPECT_THAT(Values<std::int32_t>(outputs->front()), ElementsAre(5, 6));
}

TEST(DecodeGrpcAnswer, SaysWhatIsWrong) {
  EXPECT_FALSE(DecodeGrpcAnswer("\xff\xff"));
  inference::ModelInferResponse message;
  auto& y = *message.add_outputs();
  y.set_name("y");
  y.set_datatype("INT32");
  y.add_shape(2);
  message.add_raw_output_contents("abc");
  EXPECT_THAT(DecodeGrpcAnswer(message.SerializeAsString()).error().message, HasSubstr("'y'"));
  message.add_raw_output_contents("abcd");
  EXPECT_THAT(DecodeGrpcAnswer(message.SerializeAsString()).error().message, HasSubstr("2 raw"));
}

}  // namespace
}  // namespace tandem
