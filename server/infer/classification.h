#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/base/result.h"
#include "api/base/tensor.h"

namespace tandem {

// The classification extension: the `count` largest values of each batch element as BYTES "value:index" or, with
// labels, "value:index:label". `batched`: the first dimension is the batch.
[[nodiscard]] Result<Tensor> Classify(const Tensor& scores, std::uint32_t count, bool batched,
                                      const std::vector<std::string>& labels);

}  // namespace tandem
