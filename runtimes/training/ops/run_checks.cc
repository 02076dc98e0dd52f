#include "runtimes/training/ops/run_checks.h"

#include <algorithm>

#include <ATen/ATen.h>

namespace tandem::training {

at::Tensor Optional(std::span<const at::Tensor> in, std::size_t index) {
  return index < in.size() ? in[index] : at::Tensor();
}

std::vector<std::int64_t> IntsOf(const at::Tensor& tensor, std::string_view what) {
  Require(at::isIntegralType(tensor.scalar_type(), /*includeBool=*/false) && tensor.dim() <= 1,
          "{} must be whole numbers in one dimension", what);
  const at::Tensor values = tensor.to(at::kCPU, at::kLong).contiguous();
  const auto* data = values.const_data_ptr<std::int64_t>();
  return {data, data + values.numel()};
}

std::int64_t IntOf(const at::Tensor& tensor, std::string_view what) {
  const auto values = IntsOf(tensor, what);
  Require(values.size() == 1, "{} must be one number", what);
  return values[0];
}

double NumberOf(const at::Tensor& tensor, std::string_view what) {
  Require(tensor.numel() == 1, "{} must be one number", what);
  return tensor.detach().to(at::kDouble).item<double>();
}

std::int64_t AxisOf(std::int64_t axis, std::int64_t rank) {
  Require(axis >= -rank && axis < rank, "axis {} is not one of {} dimensions", axis, rank);
  return axis < 0 ? axis + rank : axis;
}

std::vector<std::int64_t> AxesOf(std::vector<std::int64_t> axes, std::int64_t rank) {
  for (std::int64_t& axis : axes) axis = AxisOf(axis, rank);
  auto sorted = axes;
  std::ranges::sort(sorted);
  Require(std::ranges::adjacent_find(sorted) == sorted.end(), "an axis is named twice");
  return axes;
}

at::Tensor CountedFromFront(const at::Tensor& indices, std::int64_t size) {
  Require(at::isIntegralType(indices.scalar_type(), /*includeBool=*/false), "indices must be whole numbers");
  const at::Tensor wide = indices.to(at::kLong);
  return at::where(wide.lt(0), wide.add(size), wide);
}

}  // namespace tandem::training
