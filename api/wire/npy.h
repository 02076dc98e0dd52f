#pragma once

#include <filesystem>

#include "api/base/result.h"
#include "api/base/tensor.h"

namespace tandem {

// Reads a NumPy .npy file (format 1.0 to 3.0, little-endian, C order) as a tensor; the name is left empty. The error
// names the file. `max_bytes` bounds what is read.
[[nodiscard]] Result<Tensor> ReadNpy(const std::filesystem::path& path,
                                     std::uint64_t max_bytes = std::uint64_t{4} << 30);

}  // namespace tandem
