#include "runtimes/training/ops/op_table.h"

#include <cassert>

#include "runtimes/training/ops/families.h"

namespace tandem::training {

namespace {

Status CheckArity(const NodeView& node, const Arity& arity) {
  if (node.inputs() > arity.most) return Invalid("it has {} inputs and may have {}", node.inputs(), arity.most);
  if (node.outputs() > arity.outputs)
    return Invalid("it has {} outputs and may have {}", node.outputs(), arity.outputs);
  for (int i = 0; i < arity.least; ++i) {
    if (!node.HasInput(i)) return Invalid("input {} is missing", i);
  }
  return {};
}

}  // namespace

void OpTable::Add(std::string_view op, Arity arity, KernelMaker maker) {
  [[maybe_unused]] const bool added = entries_.emplace(op, Entry{.arity = arity, .maker = maker}).second;
  assert(added);
}

Result<Kernel> OpTable::Make(const onnx::NodeProto& node, int opset) const {
  if (!node.domain().empty() && node.domain() != "ai.onnx") {
    return Fail(ErrorCode::kUnsupported, "operator {}.{} is not supported in training", node.domain(), node.op_type());
  }
  const auto found = entries_.find(node.op_type());
  if (found == entries_.end()) {
    return Fail(ErrorCode::kUnsupported, "operator {} is not supported in training", node.op_type());
  }
  NodeView view(node, opset);
  if (const Status fits = CheckArity(view, found->second.arity); !fits) {
    return Fail(fits.error().code, "operator {}: {}", node.op_type(), fits.error().message);
  }
  auto kernel = found->second.maker(view);
  if (!kernel) return Fail(kernel.error().code, "operator {}: {}", node.op_type(), kernel.error().message);
  if (const Status read = view.CheckAllRead(); !read) {
    return Fail(read.error().code, "operator {}: {}", node.op_type(), read.error().message);
  }
  return kernel;
}

std::vector<std::string> OpTable::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

const OpTable& AllOps() {
  static const OpTable table = [] {
    OpTable all;
    AddArithmeticOps(all);
    AddTrigonometryOps(all);
    AddLogicOps(all);
    AddActivationOps(all);
    AddSoftmaxOps(all);
    AddConvolutionOps(all);
    AddPoolingOps(all);
    AddNormalizationOps(all);
    AddBatchNormalizationOps(all);
    AddMatrixOps(all);
    AddShapeOps(all);
    AddJoiningOps(all);
    AddGatheringOps(all);
    AddReductionOps(all);
    AddRankingOps(all);
    AddConstantOps(all);
    AddRandomOps(all);
    AddRegionOps(all);
    AddResizeOps(all);
    AddRecurrentOps(all);
    AddLossOps(all);
    AddSamplingOps(all);
    AddSignalOps(all);
    return all;
  }();
  return table;
}

}  // namespace tandem::training
