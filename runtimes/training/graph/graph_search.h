#pragma once

#include <algorithm>
#include <string>

#include <onnx/onnx_pb.h>

namespace tandem::training {

// The node that makes a value; null when none does.
[[nodiscard]] inline const onnx::NodeProto* MakerOf(const onnx::GraphProto& graph, const std::string& value) {
  for (const auto& node : graph.node()) {
    if (std::ranges::contains(node.output(), value)) return &node;
  }
  return nullptr;
}

// The weight of that name; null when there is none.
[[nodiscard]] inline const onnx::TensorProto* InitializerOf(const onnx::GraphProto& graph, const std::string& name) {
  const auto found = std::ranges::find(graph.initializer(), name, &onnx::TensorProto::name);
  return found == graph.initializer().end() ? nullptr : &*found;
}

}  // namespace tandem::training
