#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>
#include <onnx/onnx_pb.h>

#include "api/base/result.h"
#include "api/base/training_job.h"

namespace tandem::training {

// What a model's output means to its loss.
enum class OutputForm {
  kPlain,          // Numbers for regression; logits (log-probabilities are some) for classes or yes-or-no.
  kProbabilities,  // Of classes, after a softmax.
};

// The value of a graph that is compared with the targets.
struct TrainedValue {
  std::string name;
  OutputForm form = OutputForm::kPlain;
};

// The value to train for `output` (empty: the first). Where the graph ends in a softmax or sigmoid that the loss would
// undo, it is what goes into it, which is exact where the probability itself would round to 0 or 1.
[[nodiscard]] Result<TrainedValue> FindTrainedValue(const onnx::GraphProto& graph, const std::string& output,
                                                    LossKind loss);

// The mean loss of a batch, differentiable. Classes: `value` is [N, C] (further dimensions of 1 are dropped) and
// `target` N class numbers. Otherwise both have the same number of elements. Throws c10::Error where they do not fit.
[[nodiscard]] at::Tensor ComputeLoss(const LossSpec& loss, OutputForm form, const at::Tensor& value,
                                     const at::Tensor& target);

// How many of the targets of a batch are told rightly: by the largest of the classes, or on the right side for yes or
// no.
[[nodiscard]] std::int64_t CountRight(LossKind loss, const at::Tensor& value, const at::Tensor& target);

}  // namespace tandem::training
