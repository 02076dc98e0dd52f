#pragma once

#include <filesystem>
#include <map>
#include <string>

#include <ATen/core/Tensor.h>
#include <onnx/onnx_pb.h>

#include "api/base/result.h"

namespace tandem::training {

// The model in a file, with weights from files beside it brought in. Those must lie in the model's folder.
[[nodiscard]] Result<onnx::ModelProto> LoadModel(const std::filesystem::path& file);

// Puts weights in place of those of their names. One that the graph filled with a constant, or handed on by an Identity
// node, becomes a weight of its own. Names, inputs and outputs stay as they are. kInvalidArgument names a weight that
// the graph does not have.
[[nodiscard]] Status PutWeights(const std::map<std::string, at::Tensor>& weights, onnx::ModelProto& model);

// Sets an entry of the model's metadata.
void PutMetadata(const std::string& key, const std::string& value, onnx::ModelProto& model);

// Writes the model, whole or not at all. kTooLarge beyond the 2 GB that an ONNX file can have.
[[nodiscard]] Status SaveModel(const onnx::ModelProto& model, const std::filesystem::path& file);

}  // namespace tandem::training
