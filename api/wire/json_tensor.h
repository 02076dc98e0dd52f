#pragma once

#include <cstddef>
#include <memory>

#include "api/base/tensor.h"
#include "api/wire/byte_budget.h"
#include "api/wire/json_value.h"

namespace tandem {

// Reads the elements of `array` into the binary layout of a tensor of `tensor`'s type and shape (its data is not
// looked at). Each level of nesting is a dimension; the innermost arrays hold the rest flattened, so a flat array is
// always right. `json_bytes` bounds the elements that the text can hold, so that a huge shape allocates nothing. What
// is allocated counts in `budget` until the last holder lets go; kUnavailable when it has no room.
[[nodiscard]] Result<Bytes> ReadJsonTensor(simdjson::ondemand::array array, const Tensor& tensor,
                                           std::size_t json_bytes, const std::shared_ptr<ByteBudget>& budget);

}  // namespace tandem
