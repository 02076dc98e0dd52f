#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "api/base/result.h"
#include "api/base/shape.h"

namespace tandem {

// A tensor whose data lies in another file.
struct ExternalTensor {
  std::string name;
  int element_type = 0;  // TensorProto.DataType
  Shape shape;
  std::uint64_t byte_size = 0;  // Of the tensor, by type and shape; 0 for strings.
  std::string location;         // As the model says, unchecked.
  std::uint64_t offset = 0;
  std::uint64_t length = 0;       // 0: as many bytes as the tensor has.
  bool main_initializer = false;  // An initializer of the main graph, not of a subgraph or an attribute.
};

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
  std::vector<ExternalTensor> external;
};

// Reads the structure of an ONNX file, before ONNX Runtime sees it: a file that is truncated, corrupt or no ONNX model
// gets an error that names the file and the place. Bounded: memory does not grow with the weights, nesting is limited.
// Every tensor is visited, wherever it hides: initializers, attributes, subgraphs, functions, training information.
[[nodiscard]] Result<OnnxFileInfo> InspectOnnxFile(const std::filesystem::path& path);

}  // namespace tandem
