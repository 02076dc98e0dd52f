#include "runtimes/training/graph/op_work.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tandem::training {
namespace {

double Numbers(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<double>(tensor.numel()) : 0;
}

// Of each number of the output, how many products are summed; 0: it is no sum of products.
double Products(std::string_view kind, std::span<const at::Tensor> inputs, const at::Tensor& output) {
  static constexpr std::array<std::string_view, 4> kMatrix{"MatMul", "Gemm", "Dense", "Einsum"};
  if (inputs.size() < 2 || !inputs[0].defined() || !inputs[1].defined() || output.numel() == 0) return 0;
  const at::Tensor& weight = inputs[1];
  if (kind == "Conv" && weight.dim() > 0 && weight.size(0) > 0) return Numbers(weight) / double(weight.size(0));
  if (kind == "ConvTranspose")
    return Numbers(inputs[0]) * Numbers(weight) / Numbers(output) / double(inputs[0].size(1));
  if (!std::ranges::contains(kMatrix, kind) || inputs[0].dim() == 0 || weight.dim() == 0) return 0;
  // [.., m, k] by [.., k, n]: m·k times k·n is m·n times the square of k.
  const auto of_last = [](const at::Tensor& tensor) {
    return tensor.dim() < 2 ? Numbers(tensor) : double(tensor.size(-1)) * double(tensor.size(-2));
  };
  const double squared = of_last(inputs[0]) * of_last(weight) / of_last(output);
  return squared > 0 ? std::sqrt(squared) : 0;
}

}  // namespace

OpWork WorkOf(std::string_view kind, std::span<const at::Tensor> inputs, std::span<const at::Tensor> outputs) {
  OpWork work;
  for (const auto& tensors : {inputs, outputs}) {
    for (const at::Tensor& tensor : tensors) {
      if (tensor.defined()) work.bytes += tensor.nbytes();
    }
  }
  if (outputs.empty() || !outputs[0].defined()) return work;
  const double products = Products(kind, inputs, outputs[0]);
  work.flops = Numbers(outputs[0]) * (products > 0 ? 2 * products : 1);
  return work;
}

}  // namespace tandem::training
