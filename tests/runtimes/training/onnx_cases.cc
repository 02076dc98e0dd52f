#include "tests/runtimes/training/onnx_cases.h"

#include <fstream>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "api/base/format.h"
#include "runtimes/training/graph/program.h"
#include "runtimes/training/ops/tensor_proto.h"
#include "tests/fakes/open_gate.h"

namespace tandem::training {
namespace {

template <typename Message>
Result<Message> ReadMessage(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  Message message;
  if (!stream || !message.ParseFromIstream(&stream)) return Invalid("{} cannot be read", file.string());
  return message;
}

// Empty when they are alike.
std::string Difference(const at::Tensor& got, const at::Tensor& expected, Comparison comparison) {
  if (got.scalar_type() != expected.scalar_type()) {
    return Format("type {} instead of {}", c10::toString(got.scalar_type()), c10::toString(expected.scalar_type()));
  }
  if (got.sizes() != expected.sizes()) {
    return Format("{} dimensions and {} elements instead of {} and {}", got.dim(), got.numel(), expected.dim(),
                  expected.numel());
  }
  if (comparison == Comparison::kShapes) return "";
  // Half-precision results carry no more than three digits.
  const bool half = expected.scalar_type() == at::kHalf || expected.scalar_type() == at::kBFloat16;
  const double tolerance = half ? 1e-2 : 1e-4;
  const at::Tensor a = got.to(at::kDouble).contiguous();
  const at::Tensor b = expected.to(at::kDouble).contiguous();
  if (at::allclose(a, b, tolerance, tolerance, /*equal_nan=*/true)) return "";
  return Format("differs by up to {}", (a - b).abs().max().item<double>());
}

// Undefined when the value is none that ATen could hold: whether a program refuses it is what is tested.
Result<at::Tensor> ReadValue(const std::filesystem::path& file, const onnx::ValueInfoProto& info) {
  if (!info.type().has_tensor_type()) return at::Tensor();
  TANDEM_ASSIGN(auto proto, ReadMessage<onnx::TensorProto>(file));
  // ONNX's files keep the bits of these numbers as if they were whole ones.
  if (info.type().tensor_type().elem_type() == onnx::TensorProto::BFLOAT16 &&
      proto.data_type() == onnx::TensorProto::UINT16) {
    proto.set_data_type(onnx::TensorProto::BFLOAT16);
  }
  auto tensor = ReadTensor(proto);
  if (!tensor && tensor.error().code == ErrorCode::kUnsupported) return at::Tensor();
  return tensor;
}

}  // namespace

Result<onnx::ModelProto> ReadModel(const std::filesystem::path& file) {
  return ReadMessage<onnx::ModelProto>(file);
}

Result<at::Tensor> ReadTensorFile(const std::filesystem::path& file) {
  TANDEM_ASSIGN(const auto proto, ReadMessage<onnx::TensorProto>(file));
  return ReadTensor(proto);
}

Result<OnnxCase> ReadCase(const std::filesystem::path& folder) {
  OnnxCase test;
  TANDEM_ASSIGN(test.model, ReadModel(folder / "model.onnx"));
  const auto data = folder / "test_data_set_0";
  const onnx::GraphProto& graph = test.model.graph();
  for (int i = 0; i < graph.input_size(); ++i) {
    TANDEM_ASSIGN(test.inputs.emplace_back(), ReadValue(data / Format("input_{}.pb", i), graph.input(i)));
  }
  for (int i = 0; i < graph.output_size(); ++i) {
    TANDEM_ASSIGN(test.outputs.emplace_back(), ReadValue(data / Format("output_{}.pb", i), graph.output(i)));
  }
  return test;
}

Result<std::string> RunCase(const OnnxCase& test, Comparison comparison) {
  std::vector<std::string> wanted;
  for (const auto& output : test.model.graph().output()) wanted.push_back(output.name());
  TANDEM_ASSIGN(const auto program, Program::Compile(test.model, wanted, AllOps()));
  for (const auto* values : {&test.inputs, &test.outputs}) {
    for (const at::Tensor& value : *values) {
      if (!value.defined()) return "has values that are no tensors of numbers, and is not refused";
    }
  }
  OpenGate gate;
  const at::NoGradGuard no_gradients;
  auto outputs = program->Run(RunMode{}, test.inputs, gate);
  if (!outputs) {
    if (outputs.error().code == ErrorCode::kUnsupported) return std::unexpected(outputs.error());
    return outputs.error().message;
  }
  if (outputs->size() != test.outputs.size()) {
    return Format("{} outputs instead of {}", outputs->size(), test.outputs.size());
  }
  for (std::size_t i = 0; i < outputs->size(); ++i) {
    const std::string difference = Difference((*outputs)[i], test.outputs[i], comparison);
    if (!difference.empty()) return Format("output '{}': {}", wanted[i], difference);
  }
  return "";
}

}  // namespace tandem::training
