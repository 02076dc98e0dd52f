#pragma once

#include <filesystem>
#include <span>
#include <string_view>

#include "api/base/result.h"
#include "runtimes/onnx/onnx_file.h"

namespace tandem {

// The real path of the model, every link resolved, if it and its folder lie inside `root`.
[[nodiscard]] Result<std::filesystem::path> ConfineModel(const std::filesystem::path& model,
                                                         const std::filesystem::path& root);

// Where a relative `location` leads from `folder`: a regular file inside `folder`, links resolved. Refuses absolute
// paths, "..", NUL and whatever a link leads outside to.
[[nodiscard]] Result<std::filesystem::path> ConfineLocation(const std::filesystem::path& folder,
                                                            std::string_view location);

// Checks that each tensor's data lies inside `folder`, which holds the model, and inside its file. ONNX Runtime checks
// neither links nor "..", and would take some locations for memory addresses.
[[nodiscard]] Status CheckExternalData(const std::filesystem::path& folder, std::span<const ExternalTensor> tensors);

}  // namespace tandem
