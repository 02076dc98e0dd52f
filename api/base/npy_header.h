#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "api/base/data_type.h"
#include "api/base/result.h"
#include "api/base/shape.h"

namespace tandem {

// What stands before the data of a NumPy .npy file. The data is little-endian and in C order.
struct NpyHeader {
  DataType type = DataType::kFp32;
  Shape shape;
  std::size_t data_offset = 0;
};

// No header that is accepted is longer, with all that precedes it.
inline constexpr std::size_t kMaxNpyHeader = 12 + 64 * 1024;

// Reads the header (format 1.0 to 3.0) from the first bytes of a file: kMaxNpyHeader of them, or all there are. `file`
// stands for it in errors. Whether the data is there is not looked at; its size is known to fit 63 bits.
[[nodiscard]] Result<NpyHeader> ParseNpyHeader(std::string_view start, const std::string& file);

}  // namespace tandem
