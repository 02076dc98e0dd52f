#include "api/base/data_type.h"

#include <array>
#include <utility>

namespace tandem {
namespace {

struct TypeInfo {
  std::string_view name;
  std::size_t size;
};

// Indexed by DataType.
constexpr std::array<TypeInfo, kDataTypeCount> kTypes = {{
    {"BOOL", 1},
    {"UINT8", 1},
    {"UINT16", 2},
    {"UINT32", 4},
    {"UINT64", 8},
    {"INT8", 1},
    {"INT16", 2},
    {"INT32", 4},
    {"INT64", 8},
    {"FP16", 2},
    {"FP32", 4},
    {"FP64", 8},
    {"BF16", 2},
    {"BYTES", 0},
}};

}  // namespace

std::string_view DataTypeName(DataType type) {
  return kTypes[std::to_underlying(type)].name;
}

std::optional<DataType> ParseDataType(std::string_view name) {
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    if (kTypes[i].name == name) return static_cast<DataType>(i);
  }
  return std::nullopt;
}

std::size_t DataTypeSize(DataType type) {
  return kTypes[std::to_underlying(type)].size;
}

}  // namespace tandem
