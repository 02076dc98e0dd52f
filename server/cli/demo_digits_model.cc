#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "server/cli/demo_digits.h"

// The program links no ONNX library, so the model is written in protobuf's wire format, by the field numbers of
// onnx.proto.

namespace tandem::cli {
namespace {

std::string Varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out += static_cast<char>(value);
}

std::string Number(std::uint32_t field, std::int64_t value) {
  return Varint(std::uint64_t{field} << 3) + Varint(static_cast<std::uint64_t>(value));
}

std::string Field(std::uint32_t field, const std::string& bytes) {
  return Varint(std::uint64_t{field} << 3 | 2) + Varint(bytes.size()) + bytes;
}

constexpr std::int64_t kFloat = 1;  // TensorProto.FLOAT
constexpr std::int64_t kInts = 7;   // AttributeProto.INTS

// A ValueInfoProto: a tensor of floats whose first dimension is free.
std::string Value(const std::string& name, const std::vector<std::int64_t>& rest) {
  std::string shape = Field(1, Field(2, "batch"));
  for (const std::int64_t size : rest) shape += Field(1, Number(1, size));
  return Field(1, name) + Field(2, Field(1, Number(1, kFloat) + Field(2, shape)));
}

std::string Attribute(const std::string& name, const std::vector<std::int64_t>& values) {
  std::string attribute = Field(1, name);
  for (const std::int64_t value : values) attribute += Number(8, value);
  return Field(5, attribute + Number(20, kInts));
}

std::string Node(const std::string& op, const std::vector<std::string>& inputs, const std::string& output,
                 const std::string& attributes = "") {
  std::string node;
  for (const std::string& input : inputs) node += Field(1, input);
  return Field(1, node + Field(2, output) + Field(3, output) + Field(4, op) + attributes);
}

// Weights that are drawn so that a layer gives numbers as large as it takes.
class Weights {
 public:
  explicit Weights(std::uint64_t seed) : bits_(seed) {}

  std::string Draw(const std::string& name, const std::vector<std::int64_t>& shape, std::int64_t inputs) {
    return Tensor(name, shape, std::sqrt(6.0F / static_cast<float>(inputs)));
  }
  std::string Zero(const std::string& name, std::int64_t size) { return Tensor(name, {size}, 0); }

 private:
  std::string Tensor(const std::string& name, const std::vector<std::int64_t>& shape, float bound) {
    std::size_t count = 1;
    std::string tensor;
    for (const std::int64_t size : shape) {
      count *= static_cast<std::size_t>(size);
      tensor += Number(1, size);
    }
    std::vector<float> values(count);
    for (float& value : values) {
      value = bound * (static_cast<float>(bits_() >> 40) / static_cast<float>(1 << 23) - 1.0F);
    }
    const std::string raw(reinterpret_cast<const char*>(values.data()), count * sizeof(float));
    return Field(5, tensor + Number(2, kFloat) + Field(8, name) + Field(9, raw));
  }

  std::mt19937_64 bits_;
};

}  // namespace

std::string UntrainedDigitsModel(std::uint64_t seed) {
  constexpr std::int64_t kFirst = 8;  // Channels of the convolutions.
  constexpr std::int64_t kSecond = 16;
  constexpr std::int64_t kFeatures = kSecond * (kDigitSide / 4) * (kDigitSide / 4);
  const std::string same = Attribute("kernel_shape", {3, 3}) + Attribute("pads", {1, 1, 1, 1});
  const std::string half = Attribute("kernel_shape", {2, 2}) + Attribute("strides", {2, 2});
  Weights weights(seed);
  const std::string graph =
      Node("Conv", {"x", "conv1.weight", "conv1.bias"}, "conv1", same) + Node("Relu", {"conv1"}, "relu1") +
      Node("MaxPool", {"relu1"}, "pool1", half) + Node("Conv", {"pool1", "conv2.weight", "conv2.bias"}, "conv2", same) +
      Node("Relu", {"conv2"}, "relu2") + Node("MaxPool", {"relu2"}, "pool2", half) +
      Node("Flatten", {"pool2"}, "features") + Node("Gemm", {"features", "head.weight", "head.bias"}, "scores") +
      Field(2, kDigitsModel) + weights.Draw("conv1.weight", {kFirst, 1, 3, 3}, 9) + weights.Zero("conv1.bias", kFirst) +
      weights.Draw("conv2.weight", {kSecond, kFirst, 3, 3}, 9 * kFirst) + weights.Zero("conv2.bias", kSecond) +
      weights.Draw("head.weight", {kFeatures, kDigitClasses}, kFeatures) + weights.Zero("head.bias", kDigitClasses) +
      Field(11, Value("x", {1, kDigitSide, kDigitSide})) + Field(12, Value("scores", {kDigitClasses}));
  constexpr std::int64_t kIrVersion = 8;
  constexpr std::int64_t kOpset = 17;
  return Number(1, kIrVersion) + Field(2, "tandem demo") + Field(7, graph) + Field(8, Field(1, "") + Number(2, kOpset));
}

}  // namespace tandem::cli
