#pragma once

#include <string>

#include <ATen/core/Tensor.h>
#include <onnx/onnx_pb.h>

#include "api/base/result.h"

namespace tandem::training {

// Between ONNX's tensors and ATen's. Strings, complex numbers and types of less than a byte have no counterpart:
// kUnsupported names the type.

[[nodiscard]] Result<at::ScalarType> ScalarTypeOf(int onnx_type);
[[nodiscard]] Result<int> OnnxTypeOf(at::ScalarType type);

// A copy, checked: the data must be there (not in another file) and fit the shape exactly.
[[nodiscard]] Result<at::Tensor> ReadTensor(const onnx::TensorProto& proto);

// Puts the values in place of the data of `proto`; name and documentation stay. Values are converted to the type that
// `proto` has.
[[nodiscard]] Status WriteTensor(const at::Tensor& tensor, onnx::TensorProto& proto);

}  // namespace tandem::training
