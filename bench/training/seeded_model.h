#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "api/base/result.h"

namespace tandem::bench {

// Writes a model with weights of its own, by `seed`, in its file: a network by name (networks.h), or an ONNX file whose
// graph fills its weights with constants, as the light models of Debian's libonnx-testdata do. Those become weights in
// the file, a tenth around the constant.
[[nodiscard]] Status WriteSeededModel(const std::string& network_or_file, std::uint64_t seed,
                                      const std::filesystem::path& to);

}  // namespace tandem::bench
