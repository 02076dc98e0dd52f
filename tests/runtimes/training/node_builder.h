#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <onnx/onnx_pb.h>

namespace tandem::training {

// A node for tests, attribute by attribute: Node("Conv", 2).Ints("pads", {1, 1}).
class Node {
 public:
  Node(const std::string& op, int inputs, int outputs = 1) {
    proto_.set_op_type(op);
    for (int i = 0; i < inputs; ++i) proto_.add_input("in" + std::to_string(i));
    for (int i = 0; i < outputs; ++i) proto_.add_output("out" + std::to_string(i));
  }

  Node& Int(std::string_view name, std::int64_t value) {
    Add(name, onnx::AttributeProto::INT).set_i(value);
    return *this;
  }
  Node& Float(std::string_view name, float value) {
    Add(name, onnx::AttributeProto::FLOAT).set_f(value);
    return *this;
  }
  Node& Text(std::string_view name, const std::string& value) {
    Add(name, onnx::AttributeProto::STRING).set_s(value);
    return *this;
  }
  Node& Ints(std::string_view name, std::initializer_list<std::int64_t> values) {
    auto& attribute = Add(name, onnx::AttributeProto::INTS);
    for (const std::int64_t value : values) attribute.add_ints(value);
    return *this;
  }

  [[nodiscard]] const onnx::NodeProto& proto() const { return proto_; }
  // Leaves an input out.
  Node& Omit(int input) {
    proto_.set_input(input, "");
    return *this;
  }

 private:
  onnx::AttributeProto& Add(std::string_view name, onnx::AttributeProto::AttributeType type) {
    auto& attribute = *proto_.add_attribute();
    attribute.set_name(std::string(name));
    attribute.set_type(type);
    return attribute;
  }

  onnx::NodeProto proto_;
};

}  // namespace tandem::training
