#pragma once

#include <cstdint>
#include <string>

#include "api/base/result.h"
#include "api/base/shape.h"
#include "runtimes/onnx/wire_file.h"

namespace tandem {

// Where a tensor stands in a model.
enum class TensorPlace : std::uint8_t { kMainGraph, kSubgraph, kAttribute };

// A tensor whose data lies in another file.
struct ExternalTensor {
  std::string name;
  int element_type = 0;  // TensorProto.DataType
  Shape shape;
  std::uint64_t byte_size = 0;  // Of the tensor, by type and shape; 0 for strings.
  std::string location;         // As the model says, unchecked.
  std::uint64_t offset = 0;
  std::uint64_t length = 0;  // 0: as many bytes as the tensor has.
  TensorPlace place = TensorPlace::kMainGraph;
};

// A TensorProto of a model file.
struct OnnxTensorInfo {
  ExternalTensor tensor;
  bool external = false;
  std::uint64_t stored_bytes = 0;  // Of its elements, wherever they lie.
};

// Reads what a TensorProto says of itself, and checks that it holds as many elements as its shape promises: ONNX
// Runtime allocates by the shape before it looks for the data.
[[nodiscard]] Result<OnnxTensorInfo> ReadOnnxTensor(WireFile& file, WireRange message);

}  // namespace tandem
