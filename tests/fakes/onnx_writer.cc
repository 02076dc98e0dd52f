#include "tests/fakes/onnx_writer.h"

#include <array>
#include <cmath>
#include <cstring>
#include <fstream>
#include <random>
#include <stdexcept>

namespace tandem::fakes {
namespace {

// TensorProto.DataType by DataType.
constexpr std::array<int, kDataTypeCount> kElementTypes = {9, 2, 4, 12, 13, 3, 5, 6, 7, 10, 1, 11, 16, 8};

int ElementType(DataType type) {
  return kElementTypes[static_cast<std::size_t>(type)];
}

template <typename T>
std::string RawBytes(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::string TensorType(int element_type, const OnnxDims& dims) {
  std::string shape;
  for (const OnnxDim& dim : dims) {
    std::string body;
    if (dim.size >= 0) body = WireNumber(1, static_cast<std::uint64_t>(dim.size));
    if (!dim.symbol.empty()) body = WireBytes(2, dim.symbol);
    shape += WireBytes(1, body);
  }
  return WireNumber(1, static_cast<std::uint64_t>(element_type)) + WireBytes(2, shape);
}

// TypeProto with field `kind`: 1 tensor, 4 sequence, 9 optional; the latter two hold another TypeProto.
std::string Type(std::uint32_t kind, const std::string& tensor_type) {
  const std::string tensor = WireBytes(1, tensor_type);
  return kind == 1 ? tensor : WireBytes(kind, WireBytes(1, tensor));
}

std::string ValueInfo(const std::string& name, const std::string& type) {
  return WireBytes(1, name) + WireBytes(2, type);
}

std::string TensorHead(const std::string& name, DataType type, const Shape& shape) {
  std::string out;
  for (const std::int64_t dim : shape) out += WireNumber(1, static_cast<std::uint64_t>(dim));
  out += WireNumber(2, static_cast<std::uint64_t>(ElementType(type)));
  if (!name.empty()) out += WireBytes(8, name);
  return out;
}

std::string TensorProto(const std::string& name, const OnnxTensor& tensor) {
  std::string out = TensorHead(name, tensor.type, tensor.shape);
  if (tensor.type != DataType::kBytes) return out + WireBytes(9, tensor.data);
  for (const std::string& element : tensor.strings) out += WireBytes(6, element);
  return out;
}

std::string Fixed32(std::uint32_t field, float value) {
  std::string out = WireVarint(field << 3 | 5);
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
  return out;
}

struct AttributeWriter {
  std::string operator()(std::int64_t value) const {
    return WireNumber(3, static_cast<std::uint64_t>(value)) + WireNumber(20, 2);
  }
  std::string operator()(float value) const { return Fixed32(2, value) + WireNumber(20, 1); }
  std::string operator()(const std::string& value) const { return WireBytes(4, value) + WireNumber(20, 3); }
  std::string operator()(const std::vector<std::int64_t>& values) const {
    std::string out;
    for (const std::int64_t value : values) out += WireNumber(8, static_cast<std::uint64_t>(value));
    return out + WireNumber(20, 7);
  }
  std::string operator()(const std::vector<float>& values) const {
    std::string out;
    for (const float value : values) out += Fixed32(7, value);
    return out + WireNumber(20, 6);
  }
  std::string operator()(const OnnxTensor& value) const {
    return WireBytes(5, TensorProto("", value)) + WireNumber(20, 4);
  }
  std::string operator()(const std::shared_ptr<const OnnxGraph>& value) const {
    return WireBytes(6, value->Serialize()) + WireNumber(20, 5);
  }
};

std::string ExternalEntry(const std::string& key, const std::string& value) {
  return WireBytes(13, WireBytes(1, key) + WireBytes(2, value));
}

// Equal on every platform, unlike std::uniform_real_distribution.
std::vector<float> Weights(std::mt19937& random, std::size_t count, float scale) {
  std::vector<float> values(count);
  for (float& value : values) value = (static_cast<float>(random() >> 8) / 8388608.0F - 1.0F) * scale;
  return values;
}

}  // namespace

std::string WireVarint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out += static_cast<char>(value);
}

std::string WireNumber(std::uint32_t field, std::uint64_t value) {
  return WireVarint(field << 3) + WireVarint(value);
}

std::string WireBytes(std::uint32_t field, const std::string& bytes) {
  return WireVarint(field << 3 | 2) + WireVarint(bytes.size()) + bytes;
}

OnnxTensor OnnxTensor::Floats(Shape shape, const std::vector<float>& values) {
  return {DataType::kFp32, std::move(shape), RawBytes(values), {}};
}

OnnxTensor OnnxTensor::Ints(Shape shape, const std::vector<std::int64_t>& values) {
  return {DataType::kInt64, std::move(shape), RawBytes(values), {}};
}

OnnxTensor OnnxTensor::Bool(bool value) {
  return {DataType::kBool, {}, std::string(1, value ? '\1' : '\0'), {}};
}

OnnxGraph& OnnxGraph::Input(const std::string& name, DataType type, const OnnxDims& dims) {
  inputs_ += WireBytes(11, ValueInfo(name, Type(1, TensorType(ElementType(type), dims))));
  return *this;
}

OnnxGraph& OnnxGraph::OptionalInput(const std::string& name, DataType type, const OnnxDims& dims) {
  inputs_ += WireBytes(11, ValueInfo(name, Type(9, TensorType(ElementType(type), dims))));
  return *this;
}

OnnxGraph& OnnxGraph::Output(const std::string& name, DataType type, const OnnxDims& dims) {
  return RawOutput(name, ElementType(type), dims);
}

OnnxGraph& OnnxGraph::RawOutput(const std::string& name, int element_type, const OnnxDims& dims) {
  outputs_ += WireBytes(12, ValueInfo(name, Type(1, TensorType(element_type, dims))));
  return *this;
}

OnnxGraph& OnnxGraph::SequenceOutput(const std::string& name, DataType type, const OnnxDims& dims) {
  outputs_ += WireBytes(12, ValueInfo(name, Type(4, TensorType(ElementType(type), dims))));
  return *this;
}

OnnxGraph& OnnxGraph::Initializer(const std::string& name, const OnnxTensor& tensor) {
  initializers_ += WireBytes(5, TensorProto(name, tensor));
  return *this;
}

OnnxGraph& OnnxGraph::Initializer(const std::string& name, DataType type, const Shape& shape,
                                  const OnnxExternal& external) {
  std::string tensor = TensorHead(name, type, shape) + ExternalEntry("location", external.location);
  if (external.offset != 0) tensor += ExternalEntry("offset", std::to_string(external.offset));
  if (external.length != 0) tensor += ExternalEntry("length", std::to_string(external.length));
  initializers_ += WireBytes(5, tensor + WireNumber(14, 1));
  return *this;
}

OnnxGraph& OnnxGraph::Node(const std::string& op, const std::vector<std::string>& inputs,
                           const std::vector<std::string>& outputs, const OnnxAttributes& attributes,
                           const std::string& domain) {
  std::string node;
  for (const std::string& input : inputs) node += WireBytes(1, input);
  for (const std::string& output : outputs) node += WireBytes(2, output);
  node += WireBytes(3, op + "_" + (outputs.empty() ? "" : outputs.front())) + WireBytes(4, op);
  for (const auto& [name, value] : attributes) {
    node += WireBytes(5, WireBytes(1, name) + std::visit(AttributeWriter{}, value));
  }
  if (!domain.empty()) node += WireBytes(7, domain);
  nodes_ += WireBytes(1, node);
  return *this;
}

std::string OnnxGraph::Serialize() const {
  return nodes_ + WireBytes(2, name_) + initializers_ + inputs_ + outputs_;
}

std::string OnnxModel::Serialize() const {
  std::string out = WireNumber(1, static_cast<std::uint64_t>(ir_version)) + WireBytes(2, "tandem-tests");
  out += WireBytes(7, graph.Serialize());
  if (opset != 0) out += WireBytes(8, WireBytes(1, "") + WireNumber(2, static_cast<std::uint64_t>(opset)));
  return out;
}

void OnnxModel::WriteTo(const std::filesystem::path& path) const {
  WriteFile(path, Serialize());
}

void WriteFile(const std::filesystem::path& path, const std::string& bytes) {
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
}

OnnxModel IdentityModel(DataType type, const OnnxDims& dims) {
  OnnxModel model;
  model.graph.Input("x", type, dims).Output("y", type, dims).Node("Identity", {"x"}, {"y"});
  return model;
}

OnnxModel AddModel() {
  OnnxModel model;
  model.graph.Input("a", DataType::kFp32, {"batch", 4})
      .Input("b", DataType::kFp32, {"batch", 4})
      .Output("sum", DataType::kFp32, {"batch", 4})
      .Node("Add", {"a", "b"}, {"sum"});
  return model;
}

OnnxModel MlpModel(std::uint32_t seed) {
  constexpr std::int64_t kWidth = 64;
  std::mt19937 random(seed);
  OnnxModel model;
  model.graph.Input("x", DataType::kFp32, {"batch", kWidth}).Output("y", DataType::kFp32, {"batch", kWidth});
  for (const char* layer : {"1", "2"}) {
    model.graph.Initializer(std::string("W") + layer,
                            OnnxTensor::Floats({kWidth, kWidth}, Weights(random, kWidth * kWidth, 0.2F)));
    model.graph.Initializer(std::string("b") + layer, OnnxTensor::Floats({kWidth}, Weights(random, kWidth, 0.1F)));
  }
  model.graph.Node("Gemm", {"x", "W1", "b1"}, {"h"}).Node("Relu", {"h"}, {"r"}).Node("Gemm", {"r", "W2", "b2"}, {"y"});
  return model;
}

OnnxModel DefaultInputModel() {
  OnnxModel model;
  model.graph.Input("x", DataType::kFp32, {"batch", 4})
      .Input("bias", DataType::kFp32, {4})
      .Initializer("bias", OnnxTensor::Floats({4}, {1, 2, 3, 4}))
      .Output("y", DataType::kFp32, {"batch", 4})
      .Node("Add", {"x", "bias"}, {"y"});
  return model;
}

OnnxModel OptionalInputModel() {
  auto with = std::make_shared<OnnxGraph>("with");
  with->Output("with_y", DataType::kFp32, {"batch", 4})
      .Node("OptionalGetElement", {"extra"}, {"value"})
      .Node("Add", {"x", "value"}, {"with_y"});
  auto without = std::make_shared<OnnxGraph>("without");
  without->Output("without_y", DataType::kFp32, {"batch", 4}).Node("Identity", {"x"}, {"without_y"});
  OnnxModel model;
  model.graph.Input("x", DataType::kFp32, {"batch", 4})
      .OptionalInput("extra", DataType::kFp32, {4})
      .Output("y", DataType::kFp32, {"batch", 4})
      .Node("OptionalHasElement", {"extra"}, {"has"})
      .Node("If", {"has"}, {"y"},
            {{"then_branch", std::shared_ptr<const OnnxGraph>(with)},
             {"else_branch", std::shared_ptr<const OnnxGraph>(without)}});
  return model;
}

OnnxModel SlowModel() {
  constexpr std::int64_t kWidth = 256;
  std::mt19937 random(7);
  auto body = std::make_shared<OnnxGraph>("body");
  body->Input("step", DataType::kInt64, {})
      .Input("go_on", DataType::kBool, {})
      .Input("state", DataType::kFp32, {1, kWidth})
      .Output("go_on_out", DataType::kBool, {})
      .Output("state_out", DataType::kFp32, {1, kWidth})
      .Node("Identity", {"go_on"}, {"go_on_out"})
      .Node("MatMul", {"state", "W"}, {"product"})
      .Node("Tanh", {"product"}, {"state_out"});
  OnnxModel model;
  model.graph.Input("x", DataType::kFp32, {1, kWidth})
      .Input("steps", DataType::kInt64, {1})
      .Output("y", DataType::kFp32, {1, kWidth})
      .Initializer("W", OnnxTensor::Floats({kWidth, kWidth}, Weights(random, kWidth * kWidth, 0.2F)))
      .Node("Loop", {"steps", "", "x"}, {"y"}, {{"body", std::shared_ptr<const OnnxGraph>(body)}});
  return model;
}

void WriteExternalDataModel(const std::filesystem::path& folder) {
  OnnxModel model;
  model.graph.Input("x", DataType::kFp32, {"batch", 4})
      .Output("y", DataType::kFp32, {"batch", 4})
      .Initializer("w", DataType::kFp32, {4}, {.location = "weights.bin", .length = 16})
      .Node("Add", {"x", "w"}, {"y"});
  model.WriteTo(folder / "model.onnx");
  WriteFile(folder / "weights.bin", RawBytes(std::vector<float>{1, 2, 3, 4}));
}

}  // namespace tandem::fakes
