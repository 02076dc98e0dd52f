#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "api/base/result.h"

namespace tandem {

// More nodes than any model has; each costs ONNX Runtime kilobytes, and an empty one is two bytes in a file.
inline constexpr std::uint64_t kMaxNodes = 1'000'000;

// What a graph or a function consists of, subgraphs included.
struct FunctionBody {
  std::uint64_t nodes = 0;
  // How often each operator occurs, by CallName: those of ONNX and those that the model itself defines.
  std::unordered_map<std::string, std::uint64_t> calls;
};

// By their CallName. Overloads of one name are one entry, as ONNX Runtime takes them.
using FunctionBodies = std::unordered_map<std::string, FunctionBody>;

// An operator's name as ONNX Runtime identifies it.
[[nodiscard]] std::string CallName(const std::string& domain, const std::string& name);

// How many nodes there are when every call from `main` is replaced by what it stands for. Refuses functions of a model
// that call themselves, directly or through others, that are nested too deeply, or that grow to more than kMaxNodes
// that way: ONNX Runtime does just that, and has no limit of its own. Pure.
[[nodiscard]] Result<std::uint64_t> ExpandedNodes(const FunctionBody& main, const FunctionBodies& functions);

}  // namespace tandem
