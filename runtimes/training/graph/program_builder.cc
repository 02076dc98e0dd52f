// Turns an ONNX graph into a Program: orders and checks its nodes, computes what is constant, finds its weights.

#include <algorithm>
#include <ranges>
#include <set>
#include <unordered_map>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "api/base/format.h"
#include "runtimes/training/graph/fixed_inputs.h"
#include "runtimes/training/graph/fuse_nodes.h"
#include "runtimes/training/graph/program.h"
#include "runtimes/training/ops/tensor_proto.h"

namespace tandem::training {

namespace {

constexpr int kOldestOpset = 7;
constexpr int kNewestOpset = 22;

Result<int> OpsetOf(const onnx::ModelProto& model) {
  for (const auto& import : model.opset_import()) {
    if (!import.domain().empty() && import.domain() != "ai.onnx") continue;
    if (import.version() < kOldestOpset || import.version() > kNewestOpset) {
      return Fail(ErrorCode::kUnsupported, "the model is written for opset {}; training knows {} to {}",
                  import.version(), kOldestOpset, kNewestOpset);
    }
    return static_cast<int>(import.version());
  }
  if (model.opset_import_size() == 0) return Invalid("the model does not say which opset it is written for");
  return Fail(ErrorCode::kUnsupported,
              "the model has operators of domain '{}' only; training knows those of ONNX itself",
              model.opset_import(0).domain());
}

OpInfo InfoOf(const onnx::NodeProto& node) {
  const std::string& name = !node.name().empty() || node.output_size() == 0 ? node.name() : node.output(0);
  return {.kind = node.op_type(), .name = name};
}

// What makes another value in each run though its inputs are the same.
bool IsRandom(const std::string& op) {
  return op.starts_with("Random") || op == "Dropout" || op == "Bernoulli" || op == "Multinomial";
}

// A source of random numbers of its own goes on with each run; statistics that are told are those after an update.
bool IsRepeatable(const onnx::NodeProto& node) {
  if (IsRandom(node.op_type())) return !std::ranges::contains(node.attribute(), "seed", &onnx::AttributeProto::name);
  return node.op_type() != "BatchNormalization" || node.output_size() == 1;
}

Result<ProgramInput> ReadInput(const onnx::ValueInfoProto& info) {
  if (!info.type().has_tensor_type()) {
    return Fail(ErrorCode::kUnsupported, "input '{}' is no tensor", info.name());
  }
  const auto& type = info.type().tensor_type();
  auto scalar = ScalarTypeOf(type.elem_type());
  if (!scalar) return Fail(scalar.error().code, "input '{}': {}", info.name(), scalar.error().message);
  ProgramInput input{.name = info.name(), .type = *scalar, .shape = std::nullopt};
  if (type.has_shape()) {
    input.shape.emplace();
    for (const auto& size : type.shape().dim()) {
      input.shape->push_back(size.has_dim_value() && size.dim_value() >= 0 ? size.dim_value() : -1);
    }
  }
  return input;
}

}  // namespace

class ProgramBuilder {
 public:
  ProgramBuilder(const onnx::ModelProto& model, const OpTable& ops) : graph_(model.graph()), model_(model), ops_(ops) {}

  Result<std::unique_ptr<Program>> Build(const std::vector<std::string>& wanted);

 private:
  Status AddInitializers();
  Status AddInputs();
  void FindFixed();
  void FindNeeded(const std::vector<std::string>& wanted);
  Status AddNode(const onnx::NodeProto& node);
  Status Fold(const onnx::NodeProto& node, ProgramStep& step);
  void NoteWeights();
  void NoteLastUses();

  int SlotOf(const std::string& name) {
    const auto [entry, is_new] = slots_.emplace(name, program_->slots_);
    if (is_new) ++program_->slots_;
    return entry->second;
  }

  const onnx::GraphProto& graph_;
  const onnx::ModelProto& model_;
  const OpTable& ops_;
  int opset_ = 0;
  std::unique_ptr<Program> program_;
  std::unordered_map<std::string, int> slots_;
  std::unordered_map<std::string, at::Tensor> constants_;
  std::set<std::string, std::less<>> weights_;  // Constants that may be learnt: initializers, and fills in their place.
  std::set<std::string, std::less<>> statistics_;  // Means and variances of batch normalisation.
  std::set<std::string, std::less<>> fixed_;       // What is never learnt: those, and weights of classes.
  std::set<const onnx::NodeProto*> needed_;
};

Status ProgramBuilder::AddInitializers() {
  for (const auto& initializer : graph_.initializer()) {
    auto tensor = ReadTensor(initializer);
    if (!tensor) return Fail(tensor.error().code, "weight '{}': {}", initializer.name(), tensor.error().message);
    if (at::isFloatingType(tensor->scalar_type())) weights_.insert(initializer.name());
    if (!constants_.emplace(initializer.name(), *std::move(tensor)).second) {
      return Invalid("the graph has two weights named '{}'", initializer.name());
    }
  }
  if (graph_.sparse_initializer_size() > 0) {
    return Fail(ErrorCode::kUnsupported, "sparse weights are not supported in training");
  }
  return {};
}

Status ProgramBuilder::AddInputs() {
  for (const auto& info : graph_.input()) {
    if (constants_.contains(info.name())) continue;
    TANDEM_ASSIGN(ProgramInput input, ReadInput(info));
    program_->input_slots_.push_back(SlotOf(input.name));
    program_->inputs_.push_back(std::move(input));
  }
  return {};
}

void ProgramBuilder::FindFixed() {
  for (const auto& node : graph_.node()) {
    const FixedInputs inputs = FixedInputsOf(node);
    for (int i = inputs.first; i < inputs.end; ++i) {
      fixed_.insert(node.input(i));
      if (node.op_type() == "BatchNormalization") statistics_.insert(node.input(i));
    }
  }
}

// From the wanted values back. Nodes of a graph stand after what they read, so one pass is enough.
void ProgramBuilder::FindNeeded(const std::vector<std::string>& wanted) {
  std::set<std::string, std::less<>> values(wanted.begin(), wanted.end());
  for (int i = graph_.node_size() - 1; i >= 0; --i) {
    const onnx::NodeProto& node = graph_.node(i);
    if (std::ranges::none_of(node.output(), [&](const auto& name) { return values.contains(name); })) continue;
    needed_.insert(&node);
    values.insert(node.input().begin(), node.input().end());
  }
}

Status ProgramBuilder::Fold(const onnx::NodeProto& node, ProgramStep& step) {
  Tensors values(static_cast<std::size_t>(program_->slots_));
  for (int i = 0; i < node.input_size(); ++i) {
    const int slot = step.inputs[static_cast<std::size_t>(i)];
    if (slot >= 0) values[static_cast<std::size_t>(slot)] = constants_.at(node.input(i));
  }
  TANDEM_TRY(Program::RunStep(step, RunMode{}, values, nullptr));
  for (int i = 0; i < node.output_size(); ++i) {
    const int slot = step.outputs[static_cast<std::size_t>(i)];
    if (slot < 0) continue;
    at::Tensor& value = values[static_cast<std::size_t>(slot)];
    if (node.op_type() == "ConstantOfShape" && at::isFloatingType(value.scalar_type())) {
      // An expanded view would be written to at one place for all.
      value = value.contiguous();
      weights_.insert(node.output(i));
    }
    constants_.emplace(node.output(i), value);
  }
  return {};
}

Status ProgramBuilder::AddNode(const onnx::NodeProto& node) {
  const OpInfo op = InfoOf(node);
  const std::string label = Format("{} node '{}'", op.kind, op.name);
  // A value that was computed here, once, is there for every run.
  const bool first_is_new = node.input_size() > 0 && !constants_.contains(node.input(0));
  auto kernel = node.domain() == kFusedDomain ? FusedKernel(node, first_is_new) : ops_.Make(node, opset_);
  if (!kernel) return Fail(kernel.error().code, "{}: {}", label, kernel.error().message);
  ProgramStep step{.kernel = *std::move(kernel),
                   .op = op,
                   .inputs = {},
                   .outputs = {},
                   .last_uses = {},
                   .in_place = first_is_new && WorksInPlace(node),
                   .random = IsRandom(node.op_type()),
                   .repeatable = IsRepeatable(node)};
  bool constant = !step.random;
  for (const std::string& name : node.input()) {
    if (name.empty()) {
      step.inputs.push_back(-1);
      continue;
    }
    if (!slots_.contains(name) && !constants_.contains(name)) {
      return Invalid("{} reads '{}', which nothing before it makes", label, name);
    }
    // Weights stay what they are: a value made from one changes as it is learnt.
    constant &= constants_.contains(name) && !weights_.contains(name);
    step.inputs.push_back(SlotOf(name));
  }
  for (const std::string& name : node.output()) {
    if (!name.empty() && (constants_.contains(name) || slots_.contains(name))) {
      return Invalid("{} makes '{}', which is there already", label, name);
    }
    step.outputs.push_back(name.empty() ? -1 : SlotOf(name));
  }
  if (constant) return Fold(node, step);
  program_->steps_.push_back(std::move(step));
  return {};
}

// What the steps read of the constants; values that only folding needed are let go.
void ProgramBuilder::NoteWeights() {
  std::multiset<int> read;
  for (const auto& step : program_->steps_) read.insert(step.inputs.begin(), step.inputs.end());
  read.insert(program_->wanted_.begin(), program_->wanted_.end());
  for (const auto& [name, tensor] : constants_) {
    const auto slot = slots_.find(name);
    if (slot == slots_.end() || !read.contains(slot->second)) continue;
    program_->constants_.emplace_back(slot->second, tensor);
    if (!weights_.contains(name)) continue;
    program_->weights_.emplace(name,
                               Weight{.tensor = tensor,
                                      .trainable = !fixed_.contains(name) && tensor.numel() > 0 && tensor.dim() > 0,
                                      .statistic = statistics_.contains(name),
                                      .shared = read.count(slot->second) > 1});
  }
}

void ProgramBuilder::NoteLastUses() {
  std::set<int> later(program_->wanted_.begin(), program_->wanted_.end());
  for (auto& step : std::views::reverse(program_->steps_)) {
    // An output that nobody reads goes at once.
    for (const auto* slots : {&step.inputs, &step.outputs}) {
      for (const int slot : *slots) {
        if (slot >= 0 && later.insert(slot).second) step.last_uses.push_back(slot);
      }
    }
  }
}

Result<std::unique_ptr<Program>> ProgramBuilder::Build(const std::vector<std::string>& wanted) {
  if (model_.functions_size() > 0) {
    return Fail(ErrorCode::kUnsupported, "models with functions of their own are not supported in training");
  }
  TANDEM_ASSIGN(opset_, OpsetOf(model_));
  program_.reset(new Program());
  TANDEM_TRY(AddInitializers());
  TANDEM_TRY(AddInputs());
  FindFixed();
  FindNeeded(wanted);
  const at::NoGradGuard no_gradients;
  for (const auto& node : graph_.node()) {
    if (needed_.contains(&node)) TANDEM_TRY(AddNode(node));
  }
  for (const std::string& name : wanted) {
    if (!slots_.contains(name) && !constants_.contains(name)) return Invalid("the graph has no value '{}'", name);
    program_->wanted_.push_back(SlotOf(name));
  }
  NoteWeights();
  NoteLastUses();
  return std::move(program_);
}

Result<std::unique_ptr<Program>> Program::Compile(const onnx::ModelProto& model, const std::vector<std::string>& wanted,
                                                  const OpTable& ops) {
  return ProgramBuilder(model, ops).Build(wanted);
}

}  // namespace tandem::training
