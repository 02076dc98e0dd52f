#pragma once

#include <limits>
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

// How many inputs and outputs a node may have. The first `least` inputs are always there.
struct Arity {
  int least;
  int most;
  int outputs = 1;
};

// For operators that take or give any number.
inline constexpr int kMany = std::numeric_limits<int>::max();

// The operators of the standard domain that training knows. Each family of operators adds its own in a file of its own.
class OpTable {
 public:
  // `op` must be new.
  void Add(std::string_view op, Arity arity, KernelMaker maker);

  [[nodiscard]] bool Knows(std::string_view op) const { return entries_.contains(op); }
  // The kernel; all attributes of the node are known to it. Errors name the operator and what is wrong.
  [[nodiscard]] Result<Kernel> Make(const onnx::NodeProto& node, int opset) const;
  [[nodiscard]] std::vector<std::string> Names() const;

 private:
  struct Entry {
    Arity arity;
    KernelMaker maker;
  };
  std::map<std::string, Entry, std::less<>> entries_;
};

// All families. Made once; immutable, thread-safe.
[[nodiscard]] const OpTable& AllOps();

}  // namespace tandem::training
