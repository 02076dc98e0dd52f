#include "runtimes/training/ops/op_table.h"

#include <cassert>

#include "runtimes/training/ops/families.h"

namespace tandem::training {

void OpTable::Add(std::string_view op, KernelMaker maker) {
  [[maybe_unused]] const bool added = makers_.emplace(op, maker).second;
  assert(added);
}

Result<Kernel> OpTable::Make(const onnx::NodeProto& node, int opset) const {
  if (!node.domain().empty() && node.domain() != "ai.onnx") {
    return Fail(ErrorCode::kUnsupported, "operator {}.{} is not supported in training", node.domain(), node.op_type());
  }
  const auto found = makers_.find(node.op_type());
  if (found == makers_.end()) {
    return Fail(ErrorCode::kUnsupported, "operator {} is not supported in training", node.op_type());
  }
  NodeView view(node, opset);
  auto kernel = found->second(view);
  if (!kernel) return Fail(kernel.error().code, "operator {}: {}", node.op_type(), kernel.error().message);
  if (const Status read = view.CheckAllRead(); !read) {
    return Fail(read.error().code, "operator {}: {}", node.op_type(), read.error().message);
  }
  return kernel;
}

std::vector<std::string> OpTable::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, maker] : makers_) names.push_back(name);
  return names;
}

const OpTable& AllOps() {
  static const OpTable table = [] {
    OpTable all;
    AddArithmeticOps(all);
    return all;
  }();
  return table;
}

}  // namespace tandem::training
