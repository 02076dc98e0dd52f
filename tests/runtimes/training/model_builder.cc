#include "tests/runtimes/training/model_builder.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include "runtimes/training/ops/tensor_proto.h"

namespace tandem::training {
namespace {

void Describe(const std::string& name, const std::vector<std::int64_t>& shape, onnx::ValueInfoProto& info) {
  info.set_name(name);
  auto& type = *info.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx::TensorProto::FLOAT);
  type.mutable_shape();
  for (const std::int64_t size : shape) {
    auto& dim = *type.mutable_shape()->add_dim();
    if (size >= 0) dim.set_dim_value(size);
  }
}

}  // namespace

ModelBuilder::ModelBuilder() {
  model_.set_ir_version(8);
  model_.add_opset_import()->set_version(17);
  model_.mutable_graph()->set_name("test");
}

ModelBuilder& ModelBuilder::Input(const std::string& name, const std::vector<std::int64_t>& shape) {
  Describe(name, shape, *model_.mutable_graph()->add_input());
  return *this;
}

ModelBuilder& ModelBuilder::Output(const std::string& name, const std::vector<std::int64_t>& shape) {
  Describe(name, shape, *model_.mutable_graph()->add_output());
  return *this;
}

ModelBuilder& ModelBuilder::Weight(const std::string& name, const at::Tensor& value) {
  onnx::TensorProto& tensor = *model_.mutable_graph()->add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(OnnxTypeOf(value.scalar_type()).value());
  EXPECT_TRUE(WriteTensor(value, tensor));
  return *this;
}

ModelBuilder& ModelBuilder::Node(const std::string& op, std::initializer_list<const char*> inputs,
                                 std::initializer_list<const char*> outputs) {
  onnx::NodeProto& node = *model_.mutable_graph()->add_node();
  node.set_op_type(op);
  for (const char* name : inputs) node.add_input(name);
  for (const char* name : outputs) node.add_output(name);
  return *this;
}

ModelBuilder& ModelBuilder::With(const std::string& name, std::int64_t value) {
  onnx::AttributeProto& attribute =
      *model_.mutable_graph()->mutable_node(model_.graph().node_size() - 1)->add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INT);
  attribute.set_i(value);
  return *this;
}

ModelBuilder& ModelBuilder::With(const std::string& name, std::initializer_list<std::int64_t> values) {
  onnx::AttributeProto& attribute =
      *model_.mutable_graph()->mutable_node(model_.graph().node_size() - 1)->add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INTS);
  for (const std::int64_t value : values) attribute.add_ints(value);
  return *this;
}

onnx::ModelProto SmallNetwork(std::uint64_t seed) {
  const at::Generator random = at::detail::createCPUGenerator(seed);
  const auto fresh = [&](at::IntArrayRef shape) { return at::randn(shape, random); };
  return ModelBuilder()
      .Input("x", {-1, 4})
      .Output("y", {-1, 3})
      .Weight("w1", fresh({4, 8}))
      .Weight("b1", fresh({8}))
      .Weight("w2", fresh({8, 3}))
      .Weight("b2", fresh({3}))
      .Node("Gemm", {"x", "w1", "b1"}, {"h"})
      .Node("Relu", {"h"}, {"r"})
      .Node("Gemm", {"r", "w2", "b2"}, {"s"})
      .Node("Softmax", {"s"}, {"y"})
      .model();
}

onnx::ModelProto ResidualNetwork(int blocks) {
  constexpr std::int64_t kChannels = 16;
  const at::Generator random = at::detail::createCPUGenerator(1);
  ModelBuilder builder;
  const auto convolution = [&](const std::string& name, const std::string& in, std::int64_t channels) {
    builder.Weight(name + ".w", at::randn({kChannels, channels, 3, 3}, random) / 8);
    for (const char* part : {".scale", ".bias", ".mean"})
      builder.Weight(name + part, at::randn({kChannels}, random) / 8);
    builder.Weight(name + ".var", at::rand({kChannels}, random) + 0.5);
    const std::string raw = name + ".raw";
    builder.Node("Conv", {in.c_str(), (name + ".w").c_str()}, {raw.c_str()}).With("pads", {1, 1, 1, 1});
    builder.Node("BatchNormalization",
                 {raw.c_str(), (name + ".scale").c_str(), (name + ".bias").c_str(), (name + ".mean").c_str(),
                  (name + ".var").c_str()},
                 {name.c_str()});
  };
  builder.Input("x", {-1, 3, 16, 16}).Output("y", {-1, 10});
  convolution("stem", "x", 3);
  builder.Node("Relu", {"stem"}, {"block0"});
  for (int i = 1; i <= blocks; ++i) {
    const std::string in = "block" + std::to_string(i - 1);
    const std::string out = "block" + std::to_string(i);
    convolution(out + ".first", in, kChannels);
    builder.Node("Relu", {(out + ".first").c_str()}, {(out + ".inner").c_str()});
    convolution(out + ".second", out + ".inner", kChannels);
    builder.Node("Add", {(out + ".second").c_str(), in.c_str()}, {(out + ".sum").c_str()});
    builder.Node("Relu", {(out + ".sum").c_str()}, {out.c_str()});
  }
  builder.Weight("half", at::scalar_tensor(0.5)).Weight("w", at::randn({kChannels, 10}, random));
  builder.Weight("b", at::randn({10}, random));
  builder.Node("GlobalAveragePool", {("block" + std::to_string(blocks)).c_str()}, {"pooled"});
  builder.Node("Flatten", {"pooled"}, {"flat"}).Node("Dropout", {"flat", "half"}, {"dropped"});
  builder.Node("Gemm", {"dropped", "w", "b"}, {"y"});
  return builder.model();
}

}  // namespace tandem::training
