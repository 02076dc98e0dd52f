#include "runtimes/training/graph/replace_head.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include "runtimes/training/graph/graph_search.h"
#include "runtimes/training/graph/model_file.h"
#include "runtimes/training/ops/tensor_proto.h"

namespace tandem::training {
namespace {

// What may stand between the layer and the output and keeps the classes where they are.
constexpr std::array<std::string_view, 13> kPassedOver = {
    "Softmax", "LogSoftmax", "Sigmoid",   "Relu",        "Dropout",           "Identity", "Flatten",
    "Reshape", "Squeeze",    "Unsqueeze", "AveragePool", "GlobalAveragePool", "Add"};

struct Layer {
  const onnx::NodeProto* node = nullptr;
  std::string weight;
  std::string bias;  // Empty when it has none.
  std::int64_t class_axis = 0;
};

bool IsWeight(const onnx::GraphProto& graph, const std::string& name) {
  if (InitializerOf(graph, name) != nullptr) return true;
  const auto* const maker = MakerOf(graph, name);
  return maker != nullptr && maker->op_type() == "ConstantOfShape";
}

std::int64_t IntAttribute(const onnx::NodeProto& node, std::string_view name, std::int64_t absent) {
  const auto found = std::ranges::find(node.attribute(), name, &onnx::AttributeProto::name);
  return found == node.attribute().end() ? absent : found->i();
}

// The layer before `value`, and the bias that is added after it on the way.
Result<Layer> FindLayer(const onnx::GraphProto& graph, std::string value, const std::string& output) {
  std::string added;
  for (int hops = 0; hops < graph.node_size(); ++hops) {
    const onnx::NodeProto* const node = MakerOf(graph, value);
    if (node == nullptr) break;
    const std::string& op = node->op_type();
    if ((op == "Gemm" || op == "Conv") && node->input_size() >= 2 && IsWeight(graph, node->input(1))) {
      if (op == "Conv" && IntAttribute(*node, "group", 1) != 1) break;
      const bool rows = op == "Conv" || IntAttribute(*node, "transB", 0) != 0;
      return Layer{.node = node,
                   .weight = node->input(1),
                   .bias = node->input_size() > 2 ? node->input(2) : added,
                   .class_axis = rows ? 0 : 1};
    }
    if (op == "MatMul" && node->input_size() == 2 && IsWeight(graph, node->input(1))) {
      return Layer{.node = node, .weight = node->input(1), .bias = added, .class_axis = 1};
    }
    if (!std::ranges::contains(kPassedOver, op) || node->input_size() == 0) break;
    value = node->input(0);
    if (op != "Add") continue;
    const int bias = IsWeight(graph, node->input(0)) ? 0 : 1;
    if (!IsWeight(graph, node->input(bias)) || !added.empty()) break;
    added = node->input(bias);
    value = node->input(1 - bias);
  }
  return Fail(ErrorCode::kUnsupported,
              "/replace_head: output '{}' does not come from a Gemm, a MatMul or a convolution with weights of its own",
              output);
}

Result<at::Tensor> WeightValue(const onnx::GraphProto& graph, const std::string& name) {
  if (const auto* const found = InitializerOf(graph, name)) return ReadTensor(*found);
  const onnx::NodeProto* const fill = MakerOf(graph, name);
  const auto* const shape = InitializerOf(graph, fill->input(0));
  if (shape == nullptr) {
    return Fail(ErrorCode::kUnsupported, "/replace_head: the shape of weight '{}' is computed", name);
  }
  TANDEM_ASSIGN(const at::Tensor sizes, ReadTensor(*shape));
  const at::Tensor wide = sizes.to(at::kLong).contiguous();
  const std::int64_t* const begin = wide.const_data_ptr<std::int64_t>();
  const std::vector<std::int64_t> list(begin, begin + wide.numel());
  if (std::ranges::any_of(list, [](std::int64_t size) { return size < 0; })) {
    return Invalid("/replace_head: weight '{}' has a negative dimension", name);
  }
  return at::empty(list, at::kFloat);
}

int Uses(const onnx::GraphProto& graph, const std::string& name) {
  int uses = 0;
  for (const auto& node : graph.node()) uses += static_cast<int>(std::ranges::count(node.input(), name));
  return uses;
}

// What the graph says of its shapes; only the output's has to be there.
void AdaptShapes(std::int64_t before, const HeadSpec& head, const std::string& output, onnx::GraphProto& graph) {
  graph.clear_value_info();
  for (auto& info : *graph.mutable_output()) {
    if (info.name() != output) continue;
    for (auto& size : *info.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim()) {
      if (size.dim_value() == before) size.set_dim_value(head.classes);
    }
  }
}

}  // namespace

Status ReplaceHead(const HeadSpec& head, std::uint64_t seed, onnx::ModelProto& model) {
  onnx::GraphProto& graph = *model.mutable_graph();
  if (graph.output_size() == 0) return Invalid("the model has no output");
  const std::string output = head.output.empty() ? graph.output(0).name() : head.output;
  if (!std::ranges::contains(graph.output(), output, &onnx::ValueInfoProto::name)) {
    return Invalid("/replace_head/output is '{}'; the model has no such output", output);
  }
  TANDEM_ASSIGN(const Layer layer, FindLayer(graph, output, output));
  for (const std::string& name : {layer.weight, layer.bias}) {
    if (!name.empty() && Uses(graph, name) > 1) {
      return Fail(ErrorCode::kUnsupported, "/replace_head: weight '{}' is used in several places", name);
    }
  }
  TANDEM_ASSIGN(const at::Tensor old, WeightValue(graph, layer.weight));
  if (old.dim() < 2 || !at::isFloatingType(old.scalar_type())) {
    return Fail(ErrorCode::kUnsupported, "/replace_head: weight '{}' is no matrix of numbers", layer.weight);
  }
  const std::int64_t before = old.size(layer.class_axis);
  std::vector<std::int64_t> shape = old.sizes().vec();
  shape[static_cast<std::size_t>(layer.class_axis)] = head.classes;
  const std::int64_t inputs = std::max<std::int64_t>(1, old.numel() / std::max<std::int64_t>(1, before));

  // As PyTorch does for a new layer: uniform within one over the root of the number of inputs.
  const double bound = 1 / std::sqrt(static_cast<double>(inputs));
  const at::Generator random = at::detail::createCPUGenerator(seed);
  const auto fresh = [&](at::IntArrayRef sizes) {
    return at::empty(sizes, old.options()).uniform_(-bound, bound, random);
  };
  std::map<std::string, at::Tensor> weights = {{layer.weight, fresh(shape)}};
  if (!layer.bias.empty()) {
    TANDEM_ASSIGN(const at::Tensor bias, WeightValue(graph, layer.bias));
    std::vector<std::int64_t> sizes = bias.sizes().vec();
    std::ranges::replace(sizes, before, head.classes);
    weights.emplace(layer.bias, fresh(sizes));
  }
  AdaptShapes(before, head, output, graph);
  return PutWeights(weights, model);
}

}  // namespace tandem::training
