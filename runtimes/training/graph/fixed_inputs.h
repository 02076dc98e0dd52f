#pragma once

#include <onnx/onnx_pb.h>

namespace tandem::training {

// Inputs of a node that are never learnt: from the first to before the second. Running statistics of a batch
// normalisation, weights of classes in a loss.
struct FixedInputs {
  int first = 0;
  int end = 0;
};
[[nodiscard]] FixedInputs FixedInputsOf(const onnx::NodeProto& node);

// Gives such an input that is a weight's value, passed on by Identity nodes, a value of its own under the same name.
// PyTorch's exporter lets equal tensors be one, and in a new module the scale of a batch normalisation is as the
// variance is, all ones; learning the one must not change the other.
void GiveFixedInputsTheirOwn(onnx::GraphProto& graph);

}  // namespace tandem::training
