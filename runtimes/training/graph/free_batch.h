#pragma once

#include <onnx/onnx_pb.h>

namespace tandem::training {

// Lets a graph that was written for one size of batch take any: the first dimension of its inputs, where all have the
// same, and that of fixed shapes which something is reshaped to.
void FreeBatchDimension(onnx::GraphProto& graph);

}  // namespace tandem::training
