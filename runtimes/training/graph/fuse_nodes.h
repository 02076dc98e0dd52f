#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <onnx/onnx_pb.h>

#include "api/base/result.h"
#include "runtimes/training/ops/kernel.h"

namespace tandem::training {

// The domain of the operators that only FuseNodes() writes.
inline constexpr std::string_view kFusedDomain = "tandem.fused";

// Rewrites a graph so that it computes the same in less time and memory, as somebody would who writes it for ATen:
//   MatMul and Add of a bias           one dense layer
//   GELU spelt out with Erf            Gelu
//   Relu and Add of a value that nobody else reads and no gradient needs: in its place
// Names of weights stay; the `wanted` values and the graph's outputs are made as before, other values may vanish. Meant
// for a copy that is trained, never for what is saved.
void FuseNodes(const std::vector<std::string>& wanted, onnx::GraphProto& graph);

// The kernel of a node of kFusedDomain; kUnsupported for one that FuseNodes() does not write. What works in place does
// so only where its first input is made anew in every run.
[[nodiscard]] Result<Kernel> FusedKernel(const onnx::NodeProto& node, bool first_is_new);

// Whether such a kernel changes its first input, where that is made anew in every run.
[[nodiscard]] bool WorksInPlace(const onnx::NodeProto& node);

}  // namespace tandem::training
