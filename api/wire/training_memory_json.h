#pragma once

#include <optional>

#include <json/value.h>

#include "api/base/training_memory.h"

namespace tandem {

// {"persistent": {"total", "weights", "optimizer", "data", "framework"}, "ephemeral", "peak", "batch"}, and for a
// job that is to fit "fit": {"kept", "least", "slowdown"}.
[[nodiscard]] Json::Value MemoryEstimateToJson(const MemoryEstimate& estimate);

// What is known of a job's memory: {"estimate": …, "measured": {"persistent", "ephemeral"}, "error": {the same}}; null
// for what is not. "error" is EstimateError() of the two.
[[nodiscard]] Json::Value JobMemoryToJson(const std::optional<MemoryEstimate>& estimate,
                                          const std::optional<MemoryUse>& measured);

}  // namespace tandem
