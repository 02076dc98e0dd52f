#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "api/base/buffer.h"
#include "api/base/data_type.h"
#include "api/base/result.h"
#include "api/base/shape.h"

namespace tandem {

// A named tensor in the protocol's binary layout: little-endian, row-major; a BYTES element is a u32 length and then
// its bytes. Cheap to copy: the data is shared.
struct Tensor {
  std::string name;
  DataType type = DataType::kFp32;
  Shape shape;
  Bytes data;
};

// Checks that the data fits type and shape exactly; for BYTES it walks every element. The error names the tensor.
[[nodiscard]] Status CheckTensorData(const Tensor& tensor);

// The elements of a BYTES tensor that CheckTensorData has accepted; views into its data.
[[nodiscard]] std::vector<std::string_view> BytesElements(std::span<const std::byte> data);

// Appends one BYTES element in wire form.
void AppendBytesElement(std::string_view element, std::string& out);

}  // namespace tandem
