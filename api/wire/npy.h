#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/result.h"
#include "api/base/tensor.h"

namespace tandem {

// Reads a NumPy .npy file (format 1.0 to 3.0, little-endian, C order) as a tensor; the name is left empty. The error
// names the file. `max_bytes` bounds what is read.
[[nodiscard]] Result<Tensor> ReadNpy(const std::filesystem::path& path,
                                     std::uint64_t max_bytes = std::uint64_t{4} << 30);

// The same from the bytes of such a file; `name` stands for it in errors.
[[nodiscard]] Result<Tensor> ParseNpy(std::string_view bytes, const std::string& name,
                                      std::uint64_t max_bytes = std::uint64_t{4} << 30);

// Reads a NumPy .npz file, packed or not: its arrays by their names, in the order of the file. `max_bytes` bounds the
// file and what it unpacks to. The error names the file and the array.
[[nodiscard]] Result<std::vector<Tensor>> ReadNpz(const std::filesystem::path& path,
                                                  std::uint64_t max_bytes = std::uint64_t{1} << 30);

// Writes a .npz file of arrays, by their names, that are not packed; at most 2 GB. The same arrays give the same bytes.
// kUnsupported for types that NumPy does not have.
[[nodiscard]] Status WriteNpz(const std::filesystem::path& path, const std::vector<Tensor>& arrays);

}  // namespace tandem
