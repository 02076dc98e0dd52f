#pragma once

#include <onnx/onnx_pb.h>

namespace tandem::training {

// Gives a statistic of a batch normalisation that is another weight's value, passed on by an Identity node, a value of
// its own under the same name. PyTorch's exporter lets equal tensors be one, and in a new module the scale is as the
// variance is, all ones; learning the one must not change the other.
void GiveStatisticsTheirOwn(onnx::GraphProto& graph);

}  // namespace tandem::training
