#include "runtimes/training/graph/fixed_inputs.h"

#include <algorithm>
#include <map>
#include <string>

#include "runtimes/training/graph/graph_search.h"

namespace tandem::training {
namespace {

bool IsIdentity(const onnx::NodeProto& node) {
  return node.op_type() == "Identity" && node.input_size() == 1 && node.output_size() == 1;
}

// The weight whose value Identity nodes hand on as `name`; null when there is none, or no such node.
const onnx::TensorProto* HandedOn(const onnx::GraphProto& graph, std::string name) {
  for (int hops = 0; hops <= graph.node_size(); ++hops) {
    const onnx::NodeProto* maker = MakerOf(graph, name);
    if (maker == nullptr) return hops == 0 ? nullptr : InitializerOf(graph, name);
    if (!IsIdentity(*maker)) return nullptr;
    name = maker->input(0);
  }
  return nullptr;
}

}  // namespace

FixedInputs FixedInputsOf(const onnx::NodeProto& node) {
  const std::string& op = node.op_type();
  if (op == "BatchNormalization") return {.first = 3, .end = std::min(node.input_size(), 5)};
  if (op == "NegativeLogLikelihoodLoss" || op == "SoftmaxCrossEntropyLoss") {
    return {.first = 2, .end = std::min(node.input_size(), 3)};
  }
  return {};
}

void GiveFixedInputsTheirOwn(onnx::GraphProto& graph) {
  std::map<std::string, onnx::TensorProto> own;
  for (const auto& node : graph.node()) {
    const FixedInputs inputs = FixedInputsOf(node);
    for (int i = inputs.first; i < inputs.end; ++i) {
      const std::string& name = node.input(i);
      if (const onnx::TensorProto* weight = HandedOn(graph, name); weight != nullptr) own.emplace(name, *weight);
    }
  }
  auto& nodes = *graph.mutable_node();
  const auto gone = [&](const onnx::NodeProto& node) { return IsIdentity(node) && own.contains(node.output(0)); };
  nodes.erase(std::remove_if(nodes.begin(), nodes.end(), gone), nodes.end());
  for (auto& [name, weight] : own) {
    weight.set_name(name);
    *graph.add_initializer() = std::move(weight);
  }
}

}  // namespace tandem::training
