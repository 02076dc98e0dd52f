#include "runtimes/training/trainer/batch_tensors.h"

#include <utility>

#include <ATen/ATen.h>

namespace tandem::training {
namespace {

constexpr std::pair<DataType, at::ScalarType> kTypes[] = {
    {DataType::kBool, at::kBool},    {DataType::kUint8, at::kByte}, {DataType::kInt8, at::kChar},
    {DataType::kInt16, at::kShort},  {DataType::kInt32, at::kInt},  {DataType::kInt64, at::kLong},
    {DataType::kFp16, at::kHalf},    {DataType::kFp32, at::kFloat}, {DataType::kFp64, at::kDouble},
    {DataType::kBf16, at::kBFloat16}};

Result<at::Tensor> ToTensor(const Tensor& tensor) {
  for (const auto& [type, scalar] : kTypes) {
    if (type != tensor.type) continue;
    // ATen has no tensors that are only read; nobody writes to a batch.
    auto* const data = const_cast<std::byte*>(tensor.data.view.data());
    return at::from_blob(data, tensor.shape, [owner = tensor.data.owner](void*) {}, at::TensorOptions().dtype(scalar));
  }
  return Fail(ErrorCode::kUnsupported, "'{}' has elements of type {}, which training does not know", tensor.name,
              DataTypeName(tensor.type));
}

Result<DataType> TypeOf(const ProgramInput& input) {
  for (const auto& [type, scalar] : kTypes) {
    if (scalar == input.type) return type;
  }
  return Fail(ErrorCode::kUnsupported, "input '{}' has elements of type {}, which no data has", input.name,
              c10::toString(input.type));
}

}  // namespace

Result<Examples> ToExamples(const Batch& batch) {
  Examples examples{.inputs = {}, .target = {}, .size = batch.size};
  for (const Tensor& input : batch.inputs) {
    TANDEM_ASSIGN(at::Tensor tensor, ToTensor(input));
    examples.inputs.push_back(std::move(tensor));
  }
  TANDEM_ASSIGN(examples.target, ToTensor(batch.target));
  return examples;
}

Result<DataNeeds> NeedsOf(const Learner& learner, const TrainingJob& job) {
  DataNeeds needs;
  for (const ProgramInput& input : learner.inputs()) {
    if (!input.shape || input.shape->empty()) {
      return Fail(ErrorCode::kUnsupported, "input '{}' of the model has no dimension for the batch", input.name);
    }
    TANDEM_ASSIGN(const DataType type, TypeOf(input));
    needs.inputs.push_back({.name = input.name, .type = type, .shape = {input.shape->begin() + 1, input.shape->end()}});
  }
  needs.classes = job.loss.kind == LossKind::kCrossEntropy;
  const auto& output = learner.output_shape();
  if (!output) return needs;
  if (!needs.classes) {
    needs.target_shape = *output;
  } else if (!output->empty() && output->front() > 0) {
    needs.class_count = output->front();
  }
  return needs;
}

}  // namespace tandem::training
