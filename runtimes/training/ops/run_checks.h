#pragma once

#include <cstdint>
#include <format>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "api/base/format.h"

// What kernels ask of the values of a run. Wrong use throws std::invalid_argument, which a run reports as
// kInvalidArgument with the node's name.

namespace tandem::training {

// A form that is in order and that training does not know, when only the values of a run show it.
class UnsupportedError final : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

template <typename... Args>
void Require(bool holds, std::format_string<Args...> text, Args&&... args) {
  if (!holds) throw std::invalid_argument(Format(text, std::forward<Args>(args)...));
}

// The input, or an undefined tensor when the node has none there.
[[nodiscard]] at::Tensor Optional(std::span<const at::Tensor> in, std::size_t index);

// Small inputs that say something about shapes: whole numbers, in one dimension at most.
[[nodiscard]] std::vector<std::int64_t> IntsOf(const at::Tensor& tensor, std::string_view what);
[[nodiscard]] std::int64_t IntOf(const at::Tensor& tensor, std::string_view what);
// One number of any type.
[[nodiscard]] double NumberOf(const at::Tensor& tensor, std::string_view what);

// Counted from the front: 0 ≤ axis < rank.
[[nodiscard]] std::int64_t AxisOf(std::int64_t axis, std::int64_t rank);
// The same for several, which must differ.
[[nodiscard]] std::vector<std::int64_t> AxesOf(std::vector<std::int64_t> axes, std::int64_t rank);

// Indices of an axis, as 64-bit numbers, with those below zero counted from the end. Does not check them.
[[nodiscard]] at::Tensor CountedFromFront(const at::Tensor& indices, std::int64_t size);

}  // namespace tandem::training
