#pragma once

#include <cstdint>

#include <onnx/onnx_pb.h>

#include "bench/training/networks.h"

namespace tandem::bench {

// The network as PyTorch exports it (operator set 17), with an input "x" and an output "scores", its batch free, and
// random weights by `seed`.
[[nodiscard]] onnx::ModelProto OnnxNetwork(const Network& network, std::uint64_t seed);

}  // namespace tandem::bench
