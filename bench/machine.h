#pragma once

#include <filesystem>
#include <string>

#include "bench/report.h"

namespace tandem::bench {

// This machine, without the ONNX Runtime version.
[[nodiscard]] Machine DescribeMachine();

// The commit that is checked out at `root`, read from its .git; "unknown" when there is none.
[[nodiscard]] std::string CommitOf(const std::filesystem::path& root);

}  // namespace tandem::bench
