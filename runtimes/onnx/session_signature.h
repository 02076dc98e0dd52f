#pragma once

#include <optional>
#include <string>
#include <vector>

#include <onnxruntime/onnxruntime_c_api.h>

#include "api/base/model_signature.h"
#include "api/base/result.h"

namespace tandem {

// Between ONNX Runtime's element types and the protocol's.
[[nodiscard]] std::optional<DataType> DataTypeOf(ONNXTensorElementDataType type);
[[nodiscard]] ONNXTensorElementDataType ElementTypeOf(DataType type);

// A model's signature with the names of its variable dimensions: the graph's promise that equal names are equal sizes.
struct SessionSignature {
  ModelSignature signature;
  // Parallel to the signature's inputs and outputs: the name of dimension 0, empty when it is fixed or unnamed.
  std::vector<std::string> input_batch_names;
  std::vector<std::string> output_batch_names;
};

// Reads the signature of a loaded model. An element type that the protocol lacks, a sequence or a map is kUnsupported,
// naming the tensor. `optional_inputs` names initializers that requests may replace; one that the graph does not offer
// is kInvalidArgument.
[[nodiscard]] Result<SessionSignature> ReadSignature(const OrtApi& api, const OrtSession* session,
                                                     const std::string& model,
                                                     const std::vector<std::string>& optional_inputs);

}  // namespace tandem
