#include "runtimes/training/graph/fuse_nodes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>

#include "runtimes/training/ops/run_checks.h"
#include "runtimes/training/ops/tensor_proto.h"

namespace tandem::training {
namespace {

constexpr const char* kDense = "Dense";
constexpr const char* kReluInPlace = "ReluInPlace";
constexpr const char* kAddInPlace = "AddInPlace";

// Numbers of a formula are rounded to its type, and some exporters write few digits.
constexpr double kRounding = 1e-3;

using onnx::NodeProto;

// Of that kind, with one output, as all have that are rewritten.
bool IsStandard(const NodeProto& node, std::string_view op) {
  return node.op_type() == op && (node.domain().empty() || node.domain() == "ai.onnx") && node.output_size() == 1;
}

// A graph, seen by its values. Nodes that are taken out stay where they are until Sweep().
class Rewriter {
 public:
  Rewriter(const std::vector<std::string>& wanted, onnx::GraphProto& graph) : graph_(graph) {
    kept_.insert(wanted.begin(), wanted.end());
    for (const auto& output : graph.output()) kept_.insert(output.name());
    for (const auto& initializer : graph.initializer()) initializers_[initializer.name()] = &initializer;
    for (NodeProto& node : *graph.mutable_node()) {
      for (const std::string& output : node.output()) makers_[output] = &node;
      for (const std::string& input : node.input()) readers_[input].push_back(&node);
    }
  }

  void FuseDense();
  void FuseGelu();
  void WorkInPlace();
  void Sweep();

 private:
  // The node that makes a value, if it is such a one; null otherwise.
  [[nodiscard]] NodeProto* Maker(const std::string& value, std::string_view op) const {
    const auto found = makers_.find(value);
    return found != makers_.end() && IsStandard(*found->second, op) ? found->second : nullptr;
  }
  // The one node that reads a value, if it is such a one and nobody else wants the value; null otherwise.
  [[nodiscard]] NodeProto* OnlyReader(const std::string& value, std::string_view op) const {
    const auto found = readers_.find(value);
    if (kept_.contains(value) || found == readers_.end() || found->second.size() != 1) return nullptr;
    return IsStandard(*found->second.front(), op) ? found->second.front() : nullptr;
  }
  [[nodiscard]] std::optional<double> Number(const std::string& value) const;
  // Of a node with two inputs the one beside a number close to `number`; nullopt when there is none.
  [[nodiscard]] std::optional<std::string> Beside(const NodeProto& node, double number) const;
  // Of a node with two inputs the one that is not `value`.
  static const std::string& Other(const NodeProto& node, const std::string& value) {
    return node.input(0) == value ? node.input(1) : node.input(0);
  }
  // Makes `last` a node of another kind, in the place of all of `nodes`, of which it is one.
  void Replace(NodeProto& last, std::initializer_list<const NodeProto*> nodes, const char* op, std::string_view domain,
               const std::vector<std::string>& inputs);
  [[nodiscard]] bool IsFresh(const std::string& value) const;

  onnx::GraphProto& graph_;
  std::set<std::string> kept_;
  std::map<std::string, const onnx::TensorProto*> initializers_;
  std::map<std::string, NodeProto*> makers_;
  std::map<std::string, std::vector<NodeProto*>> readers_;
  std::set<const NodeProto*> gone_;
};

std::optional<double> Rewriter::Number(const std::string& value) const {
  const onnx::TensorProto* proto = nullptr;
  if (const auto found = initializers_.find(value); found != initializers_.end()) proto = found->second;
  if (const NodeProto* node = Maker(value, "Constant"); node != nullptr && node->attribute_size() == 1) {
    if (node->attribute(0).name() == "value") proto = &node->attribute(0).t();
  }
  if (proto == nullptr || proto->dims_size() > 0) return std::nullopt;
  const auto tensor = ReadTensor(*proto);
  if (!tensor || !at::isFloatingType(tensor->scalar_type())) return std::nullopt;
  return tensor->item<double>();
}

std::optional<std::string> Rewriter::Beside(const NodeProto& node, double number) const {
  if (node.input_size() != 2) return std::nullopt;
  for (const int i : {0, 1}) {
    const auto found = Number(node.input(i));
    if (found && std::abs(*found - number) < kRounding) return node.input(1 - i);
  }
  return std::nullopt;
}

void Rewriter::Replace(NodeProto& last, std::initializer_list<const NodeProto*> nodes, const char* op,
                       std::string_view domain, const std::vector<std::string>& inputs) {
  for (const NodeProto* node : nodes) {
    for (const std::string& input : node->input()) std::erase(readers_[input], node);
    if (node != &last) gone_.insert(node);
  }
  last.set_op_type(op);
  last.set_domain(std::string(domain));
  last.clear_input();
  last.clear_attribute();
  for (const std::string& input : inputs) {
    last.add_input(input);
    readers_[input].push_back(&last);
  }
}

void Rewriter::FuseDense() {
  for (NodeProto& product : *graph_.mutable_node()) {
    if (!IsStandard(product, "MatMul") || product.input_size() != 2) continue;
    NodeProto* const sum = OnlyReader(product.output(0), "Add");
    const auto weight = initializers_.find(product.input(1));
    if (sum == nullptr || sum->input_size() != 2 || weight == initializers_.end()) continue;
    const auto bias = initializers_.find(Other(*sum, product.output(0)));
    if (bias == initializers_.end()) continue;
    const auto& width = weight->second->dims();
    if (width.size() != 2 || bias->second->dims_size() != 1 || bias->second->dims(0) != width[1]) continue;
    Replace(*sum, {&product, sum}, kDense, kFusedDomain, {product.input(0), product.input(1), bias->first});
  }
}

// x · (1 + erf(x / √2)) / 2, with the half as the last factor or as one of x.
void Rewriter::FuseGelu() {
  for (NodeProto& erf : *graph_.mutable_node()) {
    if (!IsStandard(erf, "Erf") || erf.input_size() != 1) continue;
    const NodeProto* scaled = Maker(erf.input(0), "Div");
    const bool divides = scaled != nullptr;
    if (!divides) scaled = Maker(erf.input(0), "Mul");
    if (scaled == nullptr || OnlyReader(erf.input(0), "Erf") == nullptr) continue;
    const auto x = Beside(*scaled, divides ? std::sqrt(2.0) : std::sqrt(0.5));
    if (!x || (divides && scaled->input(0) != *x)) continue;
    const NodeProto* const sum = OnlyReader(erf.output(0), "Add");
    if (sum == nullptr || Beside(*sum, 1) != erf.output(0)) continue;
    NodeProto* const product = OnlyReader(sum->output(0), "Mul");
    if (product == nullptr || product->input_size() != 2) continue;
    const std::string factor = Other(*product, sum->output(0));
    if (factor == *x) {
      NodeProto* const half = OnlyReader(product->output(0), "Mul");
      if (half == nullptr || Beside(*half, 0.5) != product->output(0)) continue;
      Replace(*half, {scaled, &erf, sum, product, half}, "Gelu", "", {*x});
    } else if (const NodeProto* const half = Maker(factor, "Mul");
               half != nullptr && Beside(*half, 0.5) == *x && OnlyReader(factor, "Mul") == product) {
      Replace(*product, {scaled, &erf, sum, half, product}, "Gelu", "", {*x});
    }
  }
}

// Made anew by a node that needs it no more when gradients are computed, and read once.
bool Rewriter::IsFresh(const std::string& value) const {
  static constexpr std::array<std::string_view, 6> kMakers{"Add", "BatchNormalization", "Conv", "Gemm", "MatMul",
                                                           "Sub"};
  const auto maker = makers_.find(value);
  const auto readers = readers_.find(value);
  if (kept_.contains(value) || maker == makers_.end() || readers == readers_.end() || readers->second.size() != 1) {
    return false;
  }
  if (maker->second->output(0) != value) return false;
  return maker->second->domain() == kFusedDomain ? maker->second->op_type() != kReluInPlace
                                                 : std::ranges::contains(kMakers, maker->second->op_type());
}

void Rewriter::WorkInPlace() {
  for (NodeProto& node : *graph_.mutable_node()) {
    if (gone_.contains(&node)) continue;
    if (IsStandard(node, "Relu") && node.input_size() == 1 && IsFresh(node.input(0))) {
      Replace(node, {&node}, kReluInPlace, kFusedDomain, {node.input(0)});
    } else if (IsStandard(node, "Add") && node.input_size() == 2) {
      const std::vector<std::string> inputs(node.input().begin(), node.input().end());
      if (IsFresh(inputs[0])) {
        Replace(node, {&node}, kAddInPlace, kFusedDomain, inputs);
      } else if (IsFresh(inputs[1])) {
        Replace(node, {&node}, kAddInPlace, kFusedDomain, {inputs[1], inputs[0]});
      }
    }
  }
}

void Rewriter::Sweep() {
  auto& nodes = *graph_.mutable_node();
  for (int i = nodes.size() - 1; i >= 0; --i) {
    if (gone_.contains(&nodes[i])) nodes.DeleteSubrange(i, 1);
  }
}

at::Tensor AddInto(at::Tensor place, const at::Tensor& added) {
  const bool fits =
      place.scalar_type() == added.scalar_type() && at::infer_size(place.sizes(), added.sizes()) == place.sizes();
  return fits ? place.add_(added) : at::add(place, added);
}

at::Tensor DenseLayer(std::span<const at::Tensor> in) {
  Require(in[0].dim() > 0, "the input is a single number");
  return at::linear(in[0], in[1].t(), in[2]);
}

}  // namespace

void FuseNodes(const std::vector<std::string>& wanted, onnx::GraphProto& graph) {
  Rewriter rewriter(wanted, graph);
  rewriter.FuseGelu();
  rewriter.FuseDense();
  rewriter.WorkInPlace();
  rewriter.Sweep();
}

bool WorksInPlace(const NodeProto& node) {
  return node.domain() == kFusedDomain && (node.op_type() == kReluInPlace || node.op_type() == kAddInPlace);
}

Result<Kernel> FusedKernel(const NodeProto& node, bool first_is_new) {
  const auto fits = [&](const char* op, int inputs) {
    return node.op_type() == op && node.input_size() == inputs && node.output_size() == 1 && node.attribute_size() == 0;
  };
  if (fits(kDense, 3)) {
    return [](const RunMode&, std::span<const at::Tensor> in) -> Tensors { return {DenseLayer(in)}; };
  }
  if (fits(kReluInPlace, 1)) {
    return [first_is_new](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
      return {first_is_new ? at::Tensor(in[0]).relu_() : in[0].relu()};
    };
  }
  if (fits(kAddInPlace, 2)) {
    return [first_is_new](const RunMode&, std::span<const at::Tensor> in) -> Tensors {
      return {first_is_new ? AddInto(in[0], in[1]) : at::add(in[0], in[1])};
    };
  }
  return Fail(ErrorCode::kUnsupported, "operator {}.{} is not supported in training", node.domain(), node.op_type());
}

}  // namespace tandem::training
