#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "api/base/result.h"

namespace inference {
class ModelVersionPolicy;
}

namespace tandem::repository {

// Which of the versions on disk are to be served, ascending. Pure. Without a policy: the latest one. `latest` with 0 or
// no number means 1. An error when a specific version is not there, or when none is there at all.
[[nodiscard]] Result<std::vector<std::int64_t>> ChooseVersions(const inference::ModelVersionPolicy& policy,
                                                               std::span<const std::int64_t> available);

}  // namespace tandem::repository
