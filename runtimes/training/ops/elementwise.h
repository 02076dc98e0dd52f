#pragma once

#include "runtimes/training/ops/op_table.h"

namespace tandem::training {

// Makers for operators without attributes that are one function of ATen, with ONNX's broadcasting, which is ATen's.

using UnaryFunction = at::Tensor (*)(const at::Tensor&);
using BinaryFunction = at::Tensor (*)(const at::Tensor&, const at::Tensor&);

template <UnaryFunction kFunction>
Result<Kernel> MakeUnary(NodeView&) {
  return [](const RunMode&, std::span<const at::Tensor> in) -> Tensors { return {kFunction(in[0])}; };
}

template <BinaryFunction kFunction>
Result<Kernel> MakeBinary(NodeView&) {
  return [](const RunMode&, std::span<const at::Tensor> in) -> Tensors { return {kFunction(in[0], in[1])}; };
}

}  // namespace tandem::training
