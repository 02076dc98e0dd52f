#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <onnx/onnx_pb.h>

#include "api/base/result.h"

namespace tandem::training {

// Where Debian's libonnx-testdata lies.
inline const std::filesystem::path kOnnxData = "/usr/share/libonnx-testdata/data";

// A model of ONNX's own tests with inputs and the outputs that they must give.
struct OnnxCase {
  onnx::ModelProto model;
  // Undefined where a value is no tensor of numbers.
  std::vector<at::Tensor> inputs;
  std::vector<at::Tensor> outputs;
};

[[nodiscard]] Result<onnx::ModelProto> ReadModel(const std::filesystem::path& file);
// A tensor in a .pb file.
[[nodiscard]] Result<at::Tensor> ReadTensorFile(const std::filesystem::path& file);
// The model and its first set of data in a folder of ONNX's tests.
[[nodiscard]] Result<OnnxCase> ReadCase(const std::filesystem::path& folder);

// What is drawn by chance has a shape and a type only.
enum class Comparison { kValues, kShapes };

// What a program makes of the case: an empty text when its outputs are right (within 1e-4 of the larger of 1 and the
// value), else what is wrong. kUnsupported when it cannot be run at all.
[[nodiscard]] Result<std::string> RunCase(const OnnxCase& test, Comparison comparison = Comparison::kValues);

}  // namespace tandem::training
