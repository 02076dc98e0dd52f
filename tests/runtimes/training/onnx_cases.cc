#include "tests/runtimes/training/onnx_cases.h"

#include <format>
#include <fstream>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "runtimes/training/graph/program.h"
#include "runtimes/training/ops/tensor_proto.h"

namespace tandem::training {
namespace {

struct OpenGate final : OpGate {
  void Pass() override {}
};

template <typename Message>
Result<Message> ReadMessage(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  Message message;
  if (!stream || !message.ParseFromIstream(&stream)) return Invalid("{} cannot be read", file.string());
  return message;
}

// Empty when they are alike.
std::string Difference(const at::Tensor& got, const at::Tensor& expected) {
  if (got.scalar_type() != expected.scalar_type()) {
    return std::format("type {} instead of {}", c10::toString(got.scalar_type()),
                       c10::toString(expected.scalar_type()));
  }
  if (got.sizes() != expected.sizes()) {
    return std::format("{} dimensions and {} elements instead of {} and {}", got.dim(), got.numel(), expected.dim(),
                       expected.numel());
  }
  // Half-precision results carry no more than three digits.
  const bool half = expected.scalar_type() == at::kHalf || expected.scalar_type() == at::kBFloat16;
  const double tolerance = half ? 1e-2 : 1e-4;
  const at::Tensor a = got.to(at::kDouble).contiguous();
  const at::Tensor b = expected.to(at::kDouble).contiguous();
  if (at::allclose(a, b, tolerance, tolerance, /*equal_nan=*/true)) return "";
  return std::format("differs by up to {}", (a - b).abs().max().item<double>());
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
  for (const auto& [values, prefix] : {std::pair{&test.inputs, "input"}, {&test.outputs, "output"}}) {
    for (int i = 0; std::filesystem::exists(data / std::format("{}_{}.pb", prefix, i)); ++i) {
      TANDEM_ASSIGN(at::Tensor tensor, ReadTensorFile(data / std::format("{}_{}.pb", prefix, i)));
      values->push_back(std::move(tensor));
    }
  }
  return test;
}

Result<std::string> RunCase(const OnnxCase& test) {
  std::vector<std::string> wanted;
  for (const auto& output : test.model.graph().output()) wanted.push_back(output.name());
  TANDEM_ASSIGN(const auto program, Program::Compile(test.model, wanted, AllOps()));
  OpenGate gate;
  const at::NoGradGuard no_gradients;
  auto outputs = program->Run(RunMode{}, test.inputs, gate);
  if (!outputs) {
    if (outputs.error().code == ErrorCode::kUnsupported) return std::unexpected(outputs.error());
    return outputs.error().message;
  }
  if (outputs->size() != test.outputs.size()) {
    return std::format("{} outputs instead of {}", outputs->size(), test.outputs.size());
  }
  for (std::size_t i = 0; i < outputs->size(); ++i) {
    const std::string difference = Difference((*outputs)[i], test.outputs[i]);
    if (!difference.empty()) return std::format("output '{}': {}", wanted[i], difference);
  }
  return "";
}

}  // namespace tandem::training
