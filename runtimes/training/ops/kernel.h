#pragma once

#include <functional>
#include <span>
#include <vector>

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

namespace tandem::training {

// Values of a node in their order; an input or output that a node leaves out is undefined.
using Tensors = std::vector<at::Tensor>;

// What a node may ask of the run that it is part of.
struct RunMode {
  bool training = false;           // Dropout drops; otherwise nodes compute what they would when served.
  bool update_batch_norm = false;  // Batch normalisation takes and keeps the statistics of the batch.
  at::Generator random;            // Undefined: ATen's own.
  bool again = false;              // Computed before in the same step: statistics have been kept.
};

// One node made ready: its attributes are read and checked, a call only computes. Inputs are as the node has them, and
// are not changed but for the running statistics of batch normalisation. Returns the outputs in their order; those
// behind the last that the node has are passed over. Called on the thread of the run, under autograd. Throws what ATen
// throws (c10::Error), std::invalid_argument, or UnsupportedError; whoever runs a program names the node.
using Kernel = std::function<Tensors(const RunMode&, std::span<const at::Tensor>)>;

}  // namespace tandem::training
