// ONNX's light models: real networks whose weights are filled in, with outputs computed by ONNX's reference.

#include <string>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "runtimes/training/graph/program.h"
#include "tests/fakes/open_gate.h"
#include "tests/runtimes/training/onnx_cases.h"

namespace tandem::training {
namespace {

// ONNX's own backend test feeds these models with 0/n, 1/n, … (n-1)/n and expects the stored outputs.
at::Tensor Ramp(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return at::arange(count, at::kDouble).div(static_cast<double>(count)).to(at::kFloat).reshape(shape);
}

class LightModelTest : public ::testing::TestWithParam<const char*> {};

TEST_P(LightModelTest, ComputesWhatOnnxsReferenceComputed) {
  const std::string name = std::string("light_") + GetParam();
  const auto model = ReadModel(kOnnxData / "light" / (name + ".onnx"));
  ASSERT_TRUE(model) << model.error().message;
  const auto expected = ReadTensorFile(kOnnxData / "light" / (name + "_output_0.pb"));
  ASSERT_TRUE(expected) << expected.error().message;
  const auto program = Program::Compile(*model, {model->graph().output(0).name()}, AllOps());
  ASSERT_TRUE(program) << program.error().message;
  ASSERT_EQ((*program)->inputs().size(), 1U);
  ASSERT_TRUE((*program)->inputs()[0].shape);
  OpenGate gate;
  const at::NoGradGuard no_gradients;
  const auto outputs = (*program)->Run(RunMode{}, std::vector{Ramp(*(*program)->inputs()[0].shape)}, gate);
  ASSERT_TRUE(outputs) << outputs.error().message;
  ASSERT_EQ((*outputs)[0].sizes(), expected->sizes());
  const at::Tensor difference = (*outputs)[0].sub(*expected).abs();
  EXPECT_TRUE(difference.le(expected->abs().mul(1e-3).add(1e-7)).all().item<bool>())
      << "differs by up to " << difference.max().item<double>();
}

INSTANTIATE_TEST_SUITE_P(LibonnxTestdata, LightModelTest,
                         ::testing::Values("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50",
                                           "shufflenet", "squeezenet", "vgg19", "zfnet512"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tandem::training
