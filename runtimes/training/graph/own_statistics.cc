#include "runtimes/training/graph/own_statistics.h"

#include <algorithm>
#include <set>
#include <string>

#include "runtimes/training/graph/graph_search.h"

namespace tandem::training {

void GiveStatisticsTheirOwn(onnx::GraphProto& graph) {
  std::set<std::string> statistics;
  for (const auto& node : graph.node()) {
    if (node.op_type() != "BatchNormalization" || !node.domain().empty()) continue;
    for (int i = 3; i < std::min(node.input_size(), 5); ++i) statistics.insert(node.input(i));
  }
  const auto is_copy = [&](const onnx::NodeProto& node) {
    if (node.op_type() != "Identity" || !node.domain().empty()) return false;
    if (node.input_size() != 1 || node.output_size() != 1 || !statistics.contains(node.output(0))) return false;
    const onnx::TensorProto* weight = InitializerOf(graph, node.input(0));
    if (weight == nullptr) return false;
    onnx::TensorProto own = *weight;
    own.set_name(node.output(0));
    *graph.add_initializer() = std::move(own);
    return true;
  };
  auto& nodes = *graph.mutable_node();
  nodes.erase(std::remove_if(nodes.begin(), nodes.end(), is_copy), nodes.end());
}

}  // namespace tandem::training
