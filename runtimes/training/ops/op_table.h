#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/result.h"
#include "runtimes/training/ops/kernel.h"
#include "runtimes/training/ops/node_view.h"

namespace tandem::training {

// Makes the kernel of a node; kUnsupported (or kInvalidArgument) says which of its attributes or forms cannot be had.
using KernelMaker = Result<Kernel> (*)(NodeView& node);

// The operators of the standard domain that training knows. Each family of operators adds its own in a file of its own.
class OpTable {
 public:
  // `op` must be new.
  void Add(std::string_view op, KernelMaker maker);

  [[nodiscard]] bool Knows(std::string_view op) const { return makers_.contains(op); }
  // The kernel; all attributes of the node are known to it. Errors name the operator and what is wrong.
  [[nodiscard]] Result<Kernel> Make(const onnx::NodeProto& node, int opset) const;
  [[nodiscard]] std::vector<std::string> Names() const;

 private:
  std::map<std::string, KernelMaker, std::less<>> makers_;
};

// All families. Made once; immutable, thread-safe.
[[nodiscard]] const OpTable& AllOps();

}  // namespace tandem::training
