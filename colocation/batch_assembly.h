#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "api/base/result.h"
#include "api/base/tensor.h"
#include "colocation/work_item.h"

namespace tandem {

// True when two requests for one servable can share a run: the same inputs, alike but for the batch dimension.
[[nodiscard]] bool CanShareRun(const WorkItem& a, const WorkItem& b);

// Alike for requests that can share a run, and seldom for others.
[[nodiscard]] std::size_t ShareHash(const WorkItem& item);

// The inputs of a run. One item's tensors are used as they are; several are joined along the first dimension.
[[nodiscard]] std::vector<Tensor> JoinInputs(std::span<const WorkItem> items);

// Every output that one of the items wants, once.
[[nodiscard]] std::vector<std::string> UnionOfOutputs(std::span<const WorkItem> items);

// Gives each item its rows of the outputs that it wants, as views that share the run's buffers. An error for those who
// want an output whose first dimension is not the joined batch: it cannot be batched, whatever the configuration says.
[[nodiscard]] std::vector<Result<std::vector<Tensor>>> SplitOutputs(std::span<const WorkItem> items,
                                                                    std::vector<Tensor> outputs);

}  // namespace tandem
