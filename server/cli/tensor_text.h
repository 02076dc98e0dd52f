#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "api/base/tensor.h"

namespace tandem::cli {

// The first `at_most` elements of a tensor that CheckTensorData has accepted, each as JSON: numbers in the shortest
// form that reads back as the same value, FP16 and BF16 like the FP32 of that value; NaN and infinities as the tokens
// that REST uses; strings in quotes.
[[nodiscard]] std::vector<std::string> ElementsAsJson(const Tensor& tensor, std::size_t at_most);

// The same for a person: strings as they are, unless they hold what would upset a terminal.
[[nodiscard]] std::vector<std::string> ElementsAsText(const Tensor& tensor, std::size_t at_most);

}  // namespace tandem::cli
