#include "loadgen/infer_request_bytes.h"

#include <algorithm>
#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "api/wire/rest_infer_decode.h"

namespace tandem::loadgen {
namespace {

ModelSignature AllTypes(bool with_halves) {
  ModelSignature signature;
  for (int i = 0; i < kDataTypeCount; ++i) {
    const auto type = static_cast<DataType>(i);
    if (!with_halves && (type == DataType::kFp16 || type == DataType::kBf16)) continue;
    signature.inputs.push_back({.name = "in \"" + std::string(DataTypeName(type)), .type = type, .shape = {-1, 3, -1}});
  }
  signature.inputs.push_back({.name = "optional", .type = DataType::kFp32, .shape = {1}, .optional = true});
  return signature;
}

// What the server would decode.
InferRequest Decode(const HttpRequest& request, std::size_t& content_length) {
  std::string text = request.head;
  for (const Bytes& part : request.parts) {
    text.append(reinterpret_cast<const char*>(part.view.data()), part.size());
  }
  const std::size_t body = text.find("\r\n\r\n") + 4;
  const auto number_after = [&](const std::string& name) -> std::optional<std::uint64_t> {
    const std::size_t at = text.find(name);
    if (at > body) return std::nullopt;
    return std::stoull(text.substr(at + name.size()));
  };
  content_length = number_after("\r\nContent-Length: ").value_or(0);
  EXPECT_EQ(content_length, text.size() - body);
  AlignedBuffer buffer(text.size() - body);
  std::memcpy(buffer.data(), text.data() + body, buffer.size());
  auto decoded = DecodeRestInfer(Bytes::Own(std::move(buffer)), number_after("Inference-Header-Content-Length: "));
  EXPECT_TRUE(decoded) << decoded.error().message;
  return decoded ? std::move(*decoded) : InferRequest{};
}

TEST(BuildInferRequest, OurOwnDecoderReadsBackEveryTypeInBinaryAndJson) {
  for (const InferForm form : {InferForm::kBinary, InferForm::kJson}) {
    const auto inputs = RandomInputs(AllTypes(form == InferForm::kBinary), {.seed = 5, .batch = 2, .variable_size = 4});
    ASSERT_TRUE(inputs);
    const auto request = BuildInferRequest({.model = "m", .form = form}, *inputs);
    ASSERT_TRUE(request) << request.error().message;
    std::size_t length = 0;
    const InferRequest decoded = Decode(*request, length);
    ASSERT_EQ(decoded.inputs.size(), inputs->size());
    for (std::size_t i = 0; i < inputs->size(); ++i) {
      const Tensor& expected = (*inputs)[i];
      const Tensor& got = decoded.inputs[i].tensor;
      EXPECT_EQ(got.name, expected.name);
      EXPECT_EQ(got.type, expected.type);
      EXPECT_EQ(got.shape, (Shape{2, 3, 4}));
      EXPECT_TRUE(std::ranges::equal(got.data.view, expected.data.view)) << expected.name;
    }
  }
}

TEST(BuildInferRequest, NamesTheModelVersionHostAndExtraHeaders) {
  const auto request = BuildInferRequest({.host = "::1",
                                          .port = 9000,
                                          .model = "a b/c",
                                          .version = "3",
                                          .outputs = {"y"},
                                          .headers = {{"X-SLO-Ms", "20"}}},
                                         {});
  ASSERT_TRUE(request);
  EXPECT_TRUE(request->head.starts_with("POST /v2/models/a%20b%2Fc/versions/3/infer HTTP/1.1\r\nHost: [::1]:9000\r\n"));
  EXPECT_NE(request->head.find("\r\nX-SLO-Ms: 20\r\n"), std::string::npos);
  EXPECT_FALSE(BuildInferRequest({.model = "m", .headers = {{"A", "b\r\nC: d"}}}, {}));
}

TEST(BuildInferRequest, DoesNotCopyBinaryTensors) {
  const ModelSignature signature{.inputs = {{.name = "x", .type = DataType::kFp32, .shape = {1000}}}, .outputs = {}};
  const auto inputs = RandomInputs(signature, {});
  const auto request = BuildInferRequest({.model = "m"}, *inputs);
  ASSERT_EQ(request->parts.size(), 1U);
  EXPECT_EQ(request->parts[0].view.data(), (*inputs)[0].data.view.data());
}

TEST(BuildInferRequest, RefusesHalfPrecisionAsJson) {
  const ModelSignature signature{.inputs = {{.name = "h", .type = DataType::kFp16, .shape = {1}}}, .outputs = {}};
  const auto request = BuildInferRequest({.model = "m", .form = InferForm::kJson}, *RandomInputs(signature, {}));
  ASSERT_FALSE(request);
  EXPECT_NE(request.error().message.find("FP16"), std::string::npos);
}

TEST(RandomInputs, AreTheSameForTheSameSeed) {
  const auto a = RandomInputs(AllTypes(true), {.seed = 9});
  const auto b = RandomInputs(AllTypes(true), {.seed = 9});
  const auto c = RandomInputs(AllTypes(true), {.seed = 10});
  ASSERT_TRUE(a && b && c);
  bool differ = false;
  for (std::size_t i = 0; i < a->size(); ++i) {
    EXPECT_TRUE(std::ranges::equal((*a)[i].data.view, (*b)[i].data.view));
    differ |= !std::ranges::equal((*a)[i].data.view, (*c)[i].data.view);
  }
  EXPECT_TRUE(differ);
}

TEST(RandomInputs, RefuseATensorThatWouldNotFitInMemory) {
  const ModelSignature huge{.inputs = {{.name = "x", .type = DataType::kFp32, .shape = {1LL << 40}}}, .outputs = {}};
  const auto inputs = RandomInputs(huge, {});
  ASSERT_FALSE(inputs);
  EXPECT_NE(inputs.error().message.find("'x'"), std::string::npos);
}

}  // namespace
}  // namespace tandem::loadgen
