#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tandem {

// The element types of the Open Inference Protocol. kBytes elements have no fixed size.
enum class DataType : std::uint8_t {
  kBool,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFp16,
  kFp32,
  kFp64,
  kBf16,
  kBytes,
};

inline constexpr int kDataTypeCount = 14;

// "FP32", "BYTES", …: the protocol's spelling.
[[nodiscard]] std::string_view DataTypeName(DataType type);
[[nodiscard]] std::optional<DataType> ParseDataType(std::string_view name);

// Bytes of one element; 0 for kBytes.
[[nodiscard]] std::size_t DataTypeSize(DataType type);

}  // namespace tandem
