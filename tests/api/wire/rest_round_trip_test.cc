#include <cmath>
#include <cstring>
#include <random>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "api/wire/json_text.h"
#include "api/wire/rest_infer_encode.h"
#include "tests/api/wire/mutation.h"
#include "tests/api/wire/rest_bodies.h"

namespace tandem {
namespace {

Shape AnyShape() {
  const auto dims =
      *rc::gen::resize(4, rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(0, 5)));
  return Shape(dims.begin(), dims.begin() + std::min<std::ptrdiff_t>(4, std::ssize(dims)));
}

// NaNs differ in their bits once they have been through text.
template <typename T>
void QuietNan(char* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  if (!std::isnan(value)) return;
  value = std::numeric_limits<T>::quiet_NaN();
  std::memcpy(at, &value, sizeof(T));
}

std::string AnyData(DataType type, std::int64_t count, bool text) {
  std::string data;
  for (std::int64_t i = 0; i < count; ++i) {
    if (type == DataType::kBytes) {
      const auto element = *rc::gen::arbitrary<std::string>();
      AppendBytesElement(text && !IsValidUtf8(element) ? "ü\n\"" : element, data);
      continue;
    }
    char bytes[8];
    const auto bits = *rc::gen::resize(100, rc::gen::arbitrary<std::uint64_t>());
    std::memcpy(bytes, &bits, sizeof(bytes));
    if (type == DataType::kBool) bytes[0] &= 1;
    if (type == DataType::kFp32) QuietNan<float>(bytes);
    if (type == DataType::kFp64) QuietNan<double>(bytes);
    data.append(bytes, DataTypeSize(type));
  }
  return data;
}

Tensor AnyTensor(DataType type, bool text) {
  Tensor tensor{.name = "t", .type = type, .shape = AnyShape()};
  tensor.data = ExactBody(AnyData(type, ElementCount(tensor.shape).value(), text));
  return tensor;
}

// An answer is nearly a request: the outputs become inputs.
std::string AsRequest(std::string json) {
  const std::size_t at = json.find("\"outputs\"");
  return json.replace(at, 9, "\"inputs\"");
}

void CheckSame(const Tensor& sent, const Tensor& received) {
  RC_ASSERT(received.name == sent.name);
  RC_ASSERT(received.type == sent.type);
  RC_ASSERT(received.shape == sent.shape);
  RC_ASSERT(std::ranges::equal(received.data.view, sent.data.view));
}

RC_GTEST_PROP(RestRoundTrip, EveryTensorSurvivesJson, ()) {
  const auto type = static_cast<DataType>(*rc::gen::inRange(0, kDataTypeCount));
  RC_PRE(type != DataType::kFp16 && type != DataType::kBf16);
  const Tensor tensor = AnyTensor(type, true);
  const auto encoded = EncodeRestInfer({.model = "m", .version = "1", .outputs = {tensor}}, {}, false);
  RC_ASSERT(encoded.has_value());
  const auto decoded = DecodeJson(AsRequest(encoded->json));
  RC_ASSERT(decoded.has_value());
  CheckSame(tensor, decoded->inputs.at(0).tensor);
}

RC_GTEST_PROP(RestRoundTrip, EveryTensorSurvivesBinary, ()) {
  std::vector<Tensor> tensors;
  for (int i = 0; i < 3; ++i) {
    tensors.push_back(AnyTensor(static_cast<DataType>(*rc::gen::inRange(0, kDataTypeCount)), false));
    tensors.back().name += std::to_string(i);
  }
  const auto encoded = EncodeRestInfer({.model = "m", .version = "1", .outputs = tensors}, {}, true);
  RC_ASSERT(encoded.has_value());
  std::string binary;
  for (const Bytes& part : encoded->parts) binary.append(reinterpret_cast<const char*>(part.view.data()), part.size());
  const auto decoded = DecodeBinary(AsRequest(encoded->json), binary);
  RC_ASSERT(decoded.has_value());
  RC_ASSERT(decoded->inputs.size() == tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) CheckSame(tensors[i], decoded->inputs[i].tensor);
}

TEST(RestInferDecode, NoMutationOfARequestGetsThroughUnchecked) {
  const std::string seeds[] = {
      OneInput("FP32", "[2,2]", "[[1.5,NaN],[3,-Infinity]]"),
      OneInput("BYTES", "[2]", R"(["a\u00fc","\ud83d\ude42"])"),
      R"({"id":"7","parameters":{"priority":1,"slo_ms":2.5,"mine":"x"},"inputs":[{"data":[1,2],"shape":[2],)"
      R"("name":"x","datatype":"INT8"}],"outputs":[{"name":"y","parameters":{"classification":2}}]})",
      R"({"inputs":[{"name":"x","shape":[2],"datatype":"BYTES","parameters":{"binary_data_size":9}}]})",
  };
  std::mt19937 random(20240607);
  int accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string& seed = seeds[i % std::size(seeds)];
    std::string body = seed;
    if (i % std::size(seeds) == 3) body.append("\x01\0\0\0a\0\0\0\0", 9);
    body = Mutate(body, random);
    const bool split = random() % 2 == 0;
    const auto result =
        DecodeRestInfer(ExactBody(body), split ? std::optional<std::uint64_t>(seed.size()) : std::nullopt);
    if (!result) {
      ASSERT_EQ(result.error().code, ErrorCode::kInvalidArgument) << body;
      ASSERT_TRUE(IsValidUtf8(result.error().message)) << body;
      ASSERT_LT(result.error().message.size(), 1000U) << body;
      continue;
    }
    ++accepted;
    for (const InferInput& input : result->inputs) {
      ASSERT_TRUE(input.shared || CheckTensorData(input.tensor)) << body;
    }
  }
  EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace tandem
