#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "api/base/data_type.h"
#include "api/base/result.h"

namespace tandem {

// Dimensions, row-major. In a model's signature -1 means variable; in a request every dimension is ≥ 0.
using Shape = std::vector<std::int64_t>;

inline constexpr std::size_t kMaxRank = 32;

// "[1,3,-1,224]"
[[nodiscard]] std::string ShapeText(std::span<const std::int64_t> shape);

// Number of elements of a concrete shape; an error for a negative dimension or a product beyond 2^63-1.
[[nodiscard]] Result<std::int64_t> ElementCount(std::span<const std::int64_t> shape);

// Bytes of a dense tensor; an error as above, or when elements × size overflows. Not for kBytes.
[[nodiscard]] Result<std::int64_t> ByteSize(DataType type, std::span<const std::int64_t> shape);

}  // namespace tandem
