#pragma once

#include <string>

#include "api/base/result.h"
#include "server/cli/loadgen_options.h"

namespace tandem::cli {

// Models that one run can have.
inline constexpr std::size_t kMaxMixModels = 100;

// Reads a specification of a load on several models into `run`; what it does not say stays as it is.
// docs/load-generator.md has the form. kInvalidArgument names every mistake with its JSON pointer and its value.
[[nodiscard]] Status ReadLoadSpec(const std::string& file, RunOptions& run);

}  // namespace tandem::cli
