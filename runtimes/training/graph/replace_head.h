#pragma once

#include <cstdint>

#include <onnx/onnx_pb.h>

#include "api/base/result.h"
#include "api/base/training_job.h"

namespace tandem::training {

// Gives the layer that makes an output (a Gemm, a MatMul, or a convolution, perhaps with activations, pooling or
// reshaping after it) as many outputs as there are classes, with new random weights made from `seed`. kUnsupported or
// kInvalidArgument when the graph does not end in such a layer, or when its weights are used elsewhere, too.
[[nodiscard]] Status ReplaceHead(const HeadSpec& head, std::uint64_t seed, onnx::ModelProto& model);

}  // namespace tandem::training
