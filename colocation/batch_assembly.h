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

// The inputs of a run. One item's tensors are used as they are; several are joined along the first dimension.
[[nodiscard]] std::vector<Tensor> JoinInputs(std::span<const WorkItem> items);

// Every output that one of the items wants, once.
[[nodiscard]] std::vector<std::string> UnionOfOutputs(std::span<const WorkItem> items);

// Gives each item its rows of the run's outputs, as views that share the run's buffers. An error when an output's first
// dimension is not the joined batch: such a model cannot be batched, whatever its configuration says.
[[nodiscard]] Result<std::vector<std::vector<Tensor>>> SplitOutputs(std::span<const WorkItem> items,
                                                                    const std::vector<Tensor>& outputs);

}  // namespace tandem
