#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "api/base/result.h"

namespace tandem {

struct OnnxNode {
  std::string op;
  std::string domain;  // Empty: ONNX's own.
  std::string name;    // That of its first output when it has none.
};

// The nodes of a model's main graph, in order. Errors name the file.
[[nodiscard]] Result<std::vector<OnnxNode>> ListOnnxNodes(const std::filesystem::path& model);

}  // namespace tandem
