#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "api/base/result.h"

namespace tandem {

// Of graph inputs, those that requests must give; in models of old, initializers are called inputs, too.
using GraphInputs = std::set<std::string, std::less<>>;

// The bytes of a model that ONNX Runtime has written, without inputs that are neither among `inputs` nor initializers:
// they were initializers before ONNX Runtime computed with them, and would have to be given in requests now.
// kUnsupported: it is large even without its weights.
[[nodiscard]] Result<std::string> ReadSlimGraph(const std::filesystem::path& model, const GraphInputs& inputs);

}  // namespace tandem
