#pragma once

#include <filesystem>
#include <string>
#include <unordered_set>

#include "api/base/result.h"

namespace tandem {

// The initializers that are only operands of products of matrices: kernels copy such a weight into a layout of their
// own while a session is made, and runs read the copy. A hint where the weight itself is best kept; a kernel may read
// it all the same. Errors say what is wrong with the file.
[[nodiscard]] Result<std::unordered_set<std::string>> FindPackedWeights(const std::filesystem::path& model);

}  // namespace tandem
