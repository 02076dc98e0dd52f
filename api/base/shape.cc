#include "api/base/shape.h"

namespace tandem {

std::string ShapeText(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ',';
    text += std::to_string(shape[i]);
  }
  text += ']';
  return text;
}

Result<std::int64_t> ElementCount(std::span<const std::int64_t> shape) {
  if (shape.size() > kMaxRank)
    return Invalid("shape has {} dimensions; at most {} are allowed", shape.size(), kMaxRank);
  std::int64_t count = 1;
  bool empty = false;
  for (const std::int64_t dim : shape) {
    if (dim < 0) return Invalid("shape {} has a negative dimension", ShapeText(shape));
    // A zero empties the tensor, yet the other dimensions must still multiply to something sane.
    if (dim == 0) {
      empty = true;
      continue;
    }
    if (__builtin_mul_overflow(count, dim, &count)) {
      return Invalid("shape {} has more than 2^63-1 elements", ShapeText(shape));
    }
  }
  return empty ? 0 : count;
}

Result<std::int64_t> ByteSize(DataType type, std::span<const std::int64_t> shape) {
  TANDEM_ASSIGN(std::int64_t bytes, ElementCount(shape));
  if (__builtin_mul_overflow(bytes, static_cast<std::int64_t>(DataTypeSize(type)), &bytes)) {
    return Invalid("a {} tensor of shape {} has more than 2^63-1 bytes", DataTypeName(type), ShapeText(shape));
  }
  return bytes;
}

}  // namespace tandem
