#include "runtimes/onnx/function_calls.h"

#include "runtimes/onnx/readable_text.h"

namespace tandem {
namespace {

// ONNX Runtime follows calls by recursion.
constexpr int kMaxCallDepth = 64;

class Expansion {
 public:
  explicit Expansion(const FunctionBodies& functions) : functions_(functions) {}

  // The nodes of `body` with all calls expanded.
  Result<std::uint64_t> Count(const FunctionBody& body, int depth) {
    if (depth > kMaxCallDepth) return Invalid("its functions call one another more than {} deep", kMaxCallDepth);
    std::uint64_t nodes = body.nodes;
    for (const auto& [name, times] : body.calls) {
      const auto called = functions_.find(name);
      if (called == functions_.end()) continue;
      TANDEM_ASSIGN(const std::uint64_t each, CountFunction(name, called->second, depth + 1));
      nodes += each * times;  // Both are at most kMaxNodes: no overflow.
      if (nodes > kMaxNodes) return Invalid("with its functions expanded it has more than {} nodes", kMaxNodes);
    }
    return nodes;
  }

 private:
  static constexpr std::uint64_t kUnderWay = UINT64_MAX;

  Result<std::uint64_t> CountFunction(const std::string& name, const FunctionBody& body, int depth) {
    const auto [known, is_new] = counts_.try_emplace(name, kUnderWay);
    if (!is_new) {
      if (known->second != kUnderWay) return known->second;
      return Invalid("its function '{}' calls itself", Readable(name, 100));
    }
    TANDEM_ASSIGN(const std::uint64_t count, Count(body, depth));
    counts_[name] = count;
    return count;
  }

  const FunctionBodies& functions_;
  std::unordered_map<std::string, std::uint64_t> counts_;
};

}  // namespace

std::string CallName(const std::string& domain, const std::string& name) {
  return (domain == "ai.onnx" ? "" : domain) + ":" + name;
}

Result<std::uint64_t> ExpandedNodes(const FunctionBody& main, const FunctionBodies& functions) {
  return Expansion(functions).Count(main, 0);
}

}  // namespace tandem
