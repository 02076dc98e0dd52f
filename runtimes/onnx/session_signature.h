#pragma once

#include <optional>
#include <string>
#include <vector>

#include <onnxruntime/onnxruntime_c_api.h>

#include "api/base/model_signature.h"
#include "api/base/result.h"
#include "runtimes/onnx/session_spec.h"

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
// naming the tensor; outputs of that kind are left out when spec.outputs names others. An initializer in
// spec.optional_inputs that the graph does not offer is kInvalidArgument.
[[nodiscard]] Result<SessionSignature> ReadSignature(const OrtApi& api, const OrtSession* session,
                                                     const SessionSpec& spec);

}  // namespace tandem
