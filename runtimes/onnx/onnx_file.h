#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <unordered_set>
#include <vector>

#include "api/base/result.h"
#include "runtimes/onnx/onnx_tensor.h"

namespace tandem {

struct OpsetImport {
  std::string domain;  // Empty: ONNX's own.
  std::int64_t version = 0;
};

// What a model file says about itself.
struct OnnxFileInfo {
  std::int64_t ir_version = 0;
  std::vector<OpsetImport> opsets;
  std::string producer;  // Name and version.
  std::string graph_name;
  std::uint64_t tensor_bytes = 0;  // All weights and constants, external ones included.
  bool variable_inputs = false;    // Some input has a dimension that is not fixed.
  // Inputs of the main graph that say nothing of their shape; a scalar says that it has no dimensions.
  std::unordered_set<std::string> unranked_inputs;
  // All operators treat each element by itself: tensors without elements are nothing special to them.
  bool elementwise = false;
  // Of all graphs, calls of functions expanded.
  std::uint64_t nodes = 0;
  bool has_subgraphs = false;  // Of nodes like Loop and If: some may run more than once.
  std::vector<ExternalTensor> external;
  std::unordered_set<std::string> repeated_names;  // Of initializers, across all graphs.
};

// Reads the structure of an ONNX file, before ONNX Runtime sees it: a file that is truncated, corrupt or no ONNX model
// gets an error that names the file and the place. Every tensor is visited, wherever it hides: initializers,
// attributes, subgraphs, functions, training information. Bounded: memory does not grow with the weights, nesting is
// limited, and so are the number of nodes, tensors and other parts, since ONNX Runtime makes much of little.
// kUnsupported: it has sparse tensors, external data of a kind that is not served, or operators that take indices from
// the request which ONNX Runtime does not check.
[[nodiscard]] Result<OnnxFileInfo> InspectOnnxFile(const std::filesystem::path& path);

}  // namespace tandem
