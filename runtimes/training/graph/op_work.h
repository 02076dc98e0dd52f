#pragma once

#include <span>
#include <string_view>

#include <ATen/core/Tensor.h>

#include "api/base/op_gate.h"

namespace tandem::training {

// What one run of a node did: multiplications and additions of products and convolutions, and one operation a number
// for everything else. Undefined tensors count for nothing.
[[nodiscard]] OpWork WorkOf(std::string_view kind, std::span<const at::Tensor> inputs,
                            std::span<const at::Tensor> outputs);

}  // namespace tandem::training
