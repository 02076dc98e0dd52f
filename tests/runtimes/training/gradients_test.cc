// Gradients of operators: those of autograd, in double precision, are those of central differences; in single
// precision, where ATen takes other ways, they are the same within its digits.

#include <ostream>
#include <string>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "runtimes/training/ops/op_table.h"
#include "tests/runtimes/training/node_builder.h"

namespace tandem::training {
namespace {

struct GradientCase {
  std::string name;
  Node node;
  Tensors inputs;  // Double; others are not differentiated.
  int opset = 22;
  bool update_batch_norm = false;
};

void PrintTo(const GradientCase& test, std::ostream* stream) {
  *stream << test.name;
}

// Values with no two alike and none at a kink.
at::Tensor Values(at::IntArrayRef shape, std::uint64_t seed = 1) {
  return at::randn(shape, at::detail::createCPUGenerator(seed), at::kDouble).add(0.05);
}

at::Tensor Positive(at::IntArrayRef shape, std::uint64_t seed = 1) {
  return Values(shape, seed).abs().add(0.3);
}

at::Tensor Whole(const std::vector<std::int64_t>& values) {
  return at::tensor(values, at::kLong);
}

// The inputs as the case has them, in another precision. Each is a copy.
Tensors InputsOf(const GradientCase& test, at::ScalarType type) {
  Tensors inputs;
  for (const at::Tensor& input : test.inputs) {
    if (!input.defined()) {
      inputs.emplace_back();
    } else {
      const bool floating = at::isFloatingType(input.scalar_type());
      inputs.push_back(input.to(floating ? type : input.scalar_type(), /*non_blocking=*/false, /*copy=*/true));
    }
  }
  return inputs;
}

// One number of all outputs, to which each element adds with another weight.
at::Tensor Score(const GradientCase& test, const Kernel& kernel, const Tensors& inputs) {
  const Tensors outputs = kernel(RunMode{.update_batch_norm = test.update_batch_norm}, inputs);
  at::Tensor score;
  std::uint64_t seed = 100;
  for (const at::Tensor& output : std::span(outputs).first(static_cast<std::size_t>(test.node.proto().output_size()))) {
    if (!output.defined() || !at::isFloatingType(output.scalar_type())) continue;
    const at::Tensor part = output.to(at::kDouble).mul(Values(output.sizes(), seed++)).sum();
    score = score.defined() ? score.add(part) : part;
  }
  return score;
}

bool IsDifferentiated(const GradientCase& test, std::size_t index) {
  // Statistics of batch normalisation are kept, and weights of classes are given; neither is learnt.
  const std::string& op = test.node.proto().op_type();
  if ((op == "BatchNormalization" && index >= 3) || (op.ends_with("Loss") && index == 2)) return false;
  return test.inputs[index].defined() && at::isFloatingType(test.inputs[index].scalar_type());
}

Tensors GradientsByAutograd(const GradientCase& test, const Kernel& kernel, at::ScalarType type) {
  Tensors inputs = InputsOf(test, type);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (IsDifferentiated(test, i)) inputs[i].requires_grad_(true);
  }
  Score(test, kernel, inputs).backward();
  Tensors gradients;
  for (const at::Tensor& input : inputs) gradients.push_back(input.defined() ? input.grad() : at::Tensor());
  return gradients;
}

at::Tensor GradientByDifferences(const GradientCase& test, const Kernel& kernel, std::size_t index) {
  const at::NoGradGuard no_gradients;
  constexpr double kStep = 1e-6;
  const at::Tensor gradient = at::zeros_like(test.inputs[index]).contiguous();
  for (std::int64_t i = 0; i < gradient.numel(); ++i) {
    double scores[2];
    for (const int side : {0, 1}) {
      Tensors inputs = InputsOf(test, at::kDouble);
      inputs[index] = inputs[index].contiguous();
      inputs[index].view(-1)[i].add_(side == 0 ? -kStep : kStep);
      scores[side] = Score(test, kernel, inputs).item<double>();
    }
    gradient.view(-1)[i].fill_((scores[1] - scores[0]) / (2 * kStep));
  }
  return gradient;
}

class GradientTest : public ::testing::TestWithParam<GradientCase> {};

TEST_P(GradientTest, IsThatOfCentralDifferences) {
  const GradientCase& test = GetParam();
  const auto kernel = AllOps().Make(test.node.proto(), test.opset);
  ASSERT_TRUE(kernel) << kernel.error().message;
  const Tensors exact = GradientsByAutograd(test, *kernel, at::kDouble);
  const Tensors single = GradientsByAutograd(test, *kernel, at::kFloat);
  int differentiated = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    if (!IsDifferentiated(test, i)) continue;
    ++differentiated;
    ASSERT_TRUE(exact[i].defined()) << "input " << i << " has no gradient";
    const at::Tensor expected = GradientByDifferences(test, *kernel, i);
    EXPECT_TRUE(at::allclose(exact[i], expected, 1e-5, 1e-6))
        << "input " << i << " differs by up to " << exact[i].sub(expected).abs().max().item<double>();
    EXPECT_TRUE(at::allclose(single[i].to(at::kDouble), expected, 1e-3, 1e-3))
        << "input " << i << " in single precision differs by up to "
        << single[i].to(at::kDouble).sub(expected).abs().max().item<double>();
  }
  EXPECT_GT(differentiated, 0);
}

std::string NameOf(const ::testing::TestParamInfo<GradientCase>& info) {
  return info.param.name;
}

const at::Tensor kLeftOut;

INSTANTIATE_TEST_SUITE_P(
    Convolutions, GradientTest,
    ::testing::Values(GradientCase{"Groups",
                                   Node("Conv", 3).Int("group", 2).Ints("pads", {1, 1, 1, 1}),
                                   {Values({2, 4, 5, 5}), Values({6, 2, 3, 3}, 2), Values({6}, 3)}},
                      GradientCase{
                          "AsymmetricPads",
                          Node("Conv", 2).Ints("pads", {0, 1, 2, 1}).Ints("strides", {2, 1}).Ints("dilations", {1, 2}),
                          {Values({1, 2, 5, 6}), Values({3, 2, 3, 2}, 2)}},
                      GradientCase{"OneDimension",
                                   Node("Conv", 3).Text("auto_pad", "SAME_LOWER"),
                                   {Values({2, 3, 7}), Values({2, 3, 4}, 2), Values({2}, 3)}},
                      GradientCase{"Transposed",
                                   Node("ConvTranspose", 3).Ints("strides", {2, 2}).Ints("pads", {1, 0, 0, 1}),
                                   {Values({1, 2, 3, 3}), Values({2, 3, 3, 3}, 2), Values({3}, 3)}}),
    NameOf);

INSTANTIATE_TEST_SUITE_P(
    Normalizations, GradientTest,
    ::testing::Values(
        GradientCase{"BatchKept",
                     Node("BatchNormalization", 5),
                     {Values({3, 2, 2, 2}), Values({2}, 2), Values({2}, 3), Values({2}, 4), Positive({2}, 5)}},
        GradientCase{"BatchOfItsOwn",
                     Node("BatchNormalization", 5),
                     {Values({3, 2, 2, 2}), Values({2}, 2), Values({2}, 3), Values({2}, 4), Positive({2}, 5)},
                     22,
                     true},
        GradientCase{"Layer", Node("LayerNormalization", 3), {Values({2, 3, 5}), Values({5}, 2), Values({5}, 3)}},
        GradientCase{"LayerWithStatistics",
                     Node("LayerNormalization", 3, 3).Int("stash_type", onnx::TensorProto::DOUBLE),
                     {Values({2, 3, 5}), Values({5}, 2), Values({5}, 3)}},
        GradientCase{
            "LayerOfTwoAxes", Node("LayerNormalization", 2).Int("axis", 1), {Values({2, 3, 2}), Values({3, 2}, 2)}},
        GradientCase{
            "Instance", Node("InstanceNormalization", 3), {Values({2, 3, 4, 2}), Values({3}, 2), Values({3}, 3)}},
        GradientCase{"Group",
                     Node("GroupNormalization", 3).Int("num_groups", 2),
                     {Values({2, 4, 3}), Values({4}, 2), Values({4}, 3)}},
        GradientCase{"MeanVariance", Node("MeanVarianceNormalization", 1), {Values({2, 2, 3, 2})}},
        GradientCase{"LocalResponse", Node("LRN", 1).Int("size", 3).Float("alpha", 0.5F), {Values({2, 5, 2, 2})}},
        GradientCase{"LocalResponseEven", Node("LRN", 1).Int("size", 4).Float("alpha", 0.5F), {Values({1, 5, 2, 2})}}),
    NameOf);

INSTANTIATE_TEST_SUITE_P(
    Pools, GradientTest,
    ::testing::Values(
        GradientCase{
            "Max", Node("MaxPool", 1).Ints("kernel_shape", {3, 2}).Ints("pads", {1, 0, 1, 0}), {Values({2, 2, 5, 5})}},
        GradientCase{"MaxAsymmetric",
                     Node("MaxPool", 1).Ints("kernel_shape", {2, 2}).Text("auto_pad", "SAME_UPPER"),
                     {Values({1, 2, 5, 4})}},
        GradientCase{"Average",
                     Node("AveragePool", 1).Ints("kernel_shape", {3, 3}).Ints("pads", {1, 1, 1, 1}),
                     {Values({1, 2, 5, 4})}},
        GradientCase{"AverageAsymmetric",
                     Node("AveragePool", 1).Ints("kernel_shape", {2, 2}).Text("auto_pad", "SAME_UPPER"),
                     {Values({1, 2, 5, 4})}},
        GradientCase{"AverageDilated",
                     Node("AveragePool", 1).Ints("kernel_shape", {2}).Ints("dilations", {3}),
                     {Values({2, 2, 8})}},
        GradientCase{"Lp", Node("LpPool", 1).Ints("kernel_shape", {2, 2}).Int("p", 3), {Values({1, 2, 4, 4})}},
        GradientCase{"GlobalAverage", Node("GlobalAveragePool", 1), {Values({2, 3, 4, 2})}},
        GradientCase{"GlobalMax", Node("GlobalMaxPool", 1), {Values({2, 3, 4, 2})}}),
    NameOf);

INSTANTIATE_TEST_SUITE_P(
    Products, GradientTest,
    ::testing::Values(
        GradientCase{"Gemm",
                     Node("Gemm", 3).Int("transB", 1).Float("alpha", 0.5F).Float("beta", 2.0F),
                     {Values({3, 4}), Values({5, 4}, 2), Values({5}, 3)}},
        GradientCase{"GemmTransposed", Node("Gemm", 2).Int("transA", 1), {Values({4, 3}), Values({4, 5}, 2)}},
        GradientCase{"MatMul", Node("MatMul", 2), {Values({2, 3, 4}), Values({4, 5}, 2)}},
        GradientCase{"MatMulBatched", Node("MatMul", 2), {Values({2, 1, 3, 4}), Values({3, 4, 2}, 2)}},
        GradientCase{
            "Einsum", Node("Einsum", 2).Text("equation", "bij,bjk->bik"), {Values({2, 3, 4}), Values({2, 4, 2}, 2)}},
        GradientCase{"Det", Node("Det", 1), {Values({2, 3, 3})}},
        GradientCase{"Trilu", Node("Trilu", 1), {Values({3, 4})}}),
    NameOf);

INSTANTIATE_TEST_SUITE_P(
    Functions, GradientTest,
    ::testing::Values(
        GradientCase{"Softmax", Node("Softmax", 1).Int("axis", 1), {Values({2, 3, 4})}},
        GradientCase{"SoftmaxFlattened", Node("Softmax", 1).Int("axis", 1), {Values({2, 3, 4})}, 11},
        GradientCase{"LogSoftmax", Node("LogSoftmax", 1), {Values({3, 5})}},
        GradientCase{"Gelu", Node("Gelu", 1), {Values({3, 5})}},
        GradientCase{"GeluByTanh", Node("Gelu", 1).Text("approximate", "tanh"), {Values({3, 5})}},
        GradientCase{"Erf", Node("Erf", 1), {Values({3, 5})}}, GradientCase{"Elu", Node("Elu", 1), {Values({3, 5})}},
        GradientCase{"Selu", Node("Selu", 1), {Values({3, 5})}},
        GradientCase{"Celu", Node("Celu", 1), {Values({3, 5})}},
        GradientCase{"HardSigmoid", Node("HardSigmoid", 1), {Values({3, 5})}},
        GradientCase{"HardSwish", Node("HardSwish", 1), {Values({3, 5})}},
        GradientCase{"Mish", Node("Mish", 1), {Values({3, 5})}},
        GradientCase{"Shrink", Node("Shrink", 1).Float("bias", 0.2F), {Values({3, 5})}},
        GradientCase{"PRelu", Node("PRelu", 2), {Values({2, 3, 4}), Values({3, 1}, 2)}},
        GradientCase{"Clip",
                     Node("Clip", 3),
                     {Values({3, 5}), at::scalar_tensor(-0.5, at::kDouble), at::scalar_tensor(0.7, at::kDouble)}},
        GradientCase{"Pow", Node("Pow", 2), {Positive({3, 4}), Values({4}, 2)}},
        GradientCase{"Div", Node("Div", 2), {Values({3, 4}), Positive({3, 1}, 2)}},
        GradientCase{"Max", Node("Max", 3), {Values({3, 4}), Values({4}, 2), Values({3, 1}, 3)}},
        GradientCase{"Mean", Node("Mean", 2), {Values({3, 4}), Values({4}, 2)}},
        GradientCase{"Where", Node("Where", 3), {Values({3, 4}).gt(0), Values({3, 4}, 2), Values({4}, 3)}},
        GradientCase{"SoftmaxCrossEntropyLoss",
                     Node("SoftmaxCrossEntropyLoss", 3, 2),
                     {Values({3, 4, 2}), Whole({0, 3, 1, 1, 2, 0}).reshape({3, 2}), Positive({4}, 2)}},
        GradientCase{"NegativeLogLikelihoodLoss",
                     Node("NegativeLogLikelihoodLoss", 2).Text("reduction", "sum"),
                     {Values({3, 4}), Whole({0, 3, 1})}}),
    NameOf);

INSTANTIATE_TEST_SUITE_P(
    Reductions, GradientTest,
    ::testing::Values(
        GradientCase{"Mean", Node("ReduceMean", 2), {Values({2, 3, 4}), Whole({1, -1})}},
        GradientCase{"Prod", Node("ReduceProd", 2).Int("keepdims", 0), {Values({2, 3, 2}), Whole({0, 1})}},
        GradientCase{"L2", Node("ReduceL2", 1), {Values({3, 4})}},
        GradientCase{"Max", Node("ReduceMax", 2), {Values({3, 4}), Whole({1})}},
        GradientCase{"LogSumExp", Node("ReduceLogSumExp", 2), {Values({3, 4}), Whole({0})}},
        GradientCase{"SumSquare", Node("ReduceSumSquare", 1), {Values({3, 4})}},
        GradientCase{"CumSum", Node("CumSum", 2).Int("exclusive", 1).Int("reverse", 1), {Values({3, 4}), Whole({1})}},
        GradientCase{"TopK", Node("TopK", 2, 2), {Values({3, 5}), Whole({2})}}),
    NameOf);

INSTANTIATE_TEST_SUITE_P(
    Places, GradientTest,
    ::testing::Values(
        GradientCase{"GatherRows", Node("Gather", 2), {Values({4, 3}), Whole({1, -1, 1, 0}).reshape({2, 2})}},
        GradientCase{"GatherMiddle", Node("Gather", 2).Int("axis", 1), {Values({2, 4, 3}), Whole({3, 0, 3})}},
        GradientCase{"GatherElements",
                     Node("GatherElements", 2).Int("axis", 1),
                     {Values({2, 3}), Whole({0, -1, 1, 1}).reshape({2, 2})}},
        GradientCase{"GatherND", Node("GatherND", 2), {Values({2, 3, 2}), Whole({0, 1, 1, -1}).reshape({2, 2})}},
        GradientCase{"ScatterElements",
                     Node("ScatterElements", 3).Text("reduction", "add"),
                     {Values({3, 2}), Whole({0, 2, 2, 2}).reshape({2, 2}), Values({2, 2}, 2)}},
        GradientCase{
            "ScatterND", Node("ScatterND", 3), {Values({4, 2}), Whole({1, 3}).reshape({2, 1}), Values({2, 2}, 2)}},
        GradientCase{
            "SliceBackwards", Node("Slice", 5), {Values({3, 6}), Whole({5}), Whole({-7}), Whole({1}), Whole({-2})}},
        GradientCase{"Concat", Node("Concat", 2).Int("axis", 1), {Values({2, 3}), Values({2, 2}, 2)}},
        GradientCase{"Split", Node("Split", 1, 2).Int("num_outputs", 2), {Values({5, 2})}},
        GradientCase{"PadReflected", Node("Pad", 2).Text("mode", "reflect"), {Values({3, 4}), Whole({1, 2, 0, 1})}},
        GradientCase{"PadConstant", Node("Pad", 2), {Values({3, 4}), Whole({1, -1, 0, 2})}},
        GradientCase{"Expand", Node("Expand", 2), {Values({3, 1}), Whole({2, 1, 4})}},
        GradientCase{"Tile", Node("Tile", 2), {Values({2, 3}), Whole({2, 2})}},
        GradientCase{"DepthToSpace", Node("DepthToSpace", 1).Int("blocksize", 2), {Values({1, 4, 2, 3})}},
        GradientCase{"GridSample", Node("GridSample", 2), {Values({1, 2, 4, 4}), Values({1, 3, 3, 2}, 2).mul(0.4)}},
        GradientCase{
            "Col2Im", Node("Col2Im", 3).Ints("strides", {1, 2}), {Values({1, 8, 6}), Whole({4, 5}), Whole({2, 2})}},
        GradientCase{"Dft", Node("DFT", 1), {Values({2, 5, 1})}}),
    NameOf);

INSTANTIATE_TEST_SUITE_P(
    Resizes, GradientTest,
    ::testing::Values(GradientCase{"Nearest",
                                   Node("Resize", 4).Omit(1).Omit(2),
                                   {Values({1, 2, 3, 3}), kLeftOut, kLeftOut, Whole({1, 2, 6, 6})}},
                      GradientCase{"NearestUneven",
                                   Node("Resize", 4).Omit(1).Omit(2),
                                   {Values({1, 2, 3, 3}), kLeftOut, kLeftOut, Whole({1, 2, 5, 4})}},
                      GradientCase{"Linear",
                                   Node("Resize", 4).Omit(1).Omit(2).Text("mode", "linear"),
                                   {Values({1, 2, 3, 3}), kLeftOut, kLeftOut, Whole({1, 2, 5, 7})}},
                      GradientCase{"LinearSmoothed",
                                   Node("Resize", 4).Omit(1).Omit(2).Text("mode", "linear").Int("antialias", 1),
                                   {Values({1, 1, 6, 7}), kLeftOut, kLeftOut, Whole({1, 1, 3, 4})}},
                      GradientCase{"Cubic",
                                   Node("Resize", 4).Omit(1).Omit(2).Text("mode", "cubic"),
                                   {Values({1, 1, 4, 4}), kLeftOut, kLeftOut, Whole({1, 1, 6, 3})}}),
    NameOf);

INSTANTIATE_TEST_SUITE_P(
    Recurrent, GradientTest,
    ::testing::Values(GradientCase{"Lstm",
                                   Node("LSTM", 4, 3).Int("hidden_size", 3),
                                   {Values({4, 2, 2}), Values({1, 12, 2}, 2), Values({1, 12, 3}, 3),
                                    Values({1, 24}, 4)}},
                      GradientCase{"LstmBothWays",
                                   Node("LSTM", 7, 3).Int("hidden_size", 2).Text("direction", "bidirectional").Omit(4),
                                   {Values({3, 2, 2}), Values({2, 8, 2}, 2), Values({2, 8, 2}, 3), Values({2, 16}, 4),
                                    kLeftOut, Values({2, 2, 2}, 5), Values({2, 2, 2}, 6)}},
                      GradientCase{"LstmOfLengths",
                                   Node("LSTM", 8, 3).Int("hidden_size", 2).Text("direction", "reverse"),
                                   {Values({3, 2, 2}), Values({1, 8, 2}, 2), Values({1, 8, 2}, 3), Values({1, 16}, 4),
                                    Whole({3, 2}), Values({1, 2, 2}, 5), Values({1, 2, 2}, 6), Values({1, 6}, 7)}},
                      GradientCase{"Gru",
                                   Node("GRU", 4, 2).Int("hidden_size", 3).Int("linear_before_reset", 1),
                                   {Values({4, 2, 2}), Values({1, 9, 2}, 2), Values({1, 9, 3}, 3), Values({1, 18}, 4)}},
                      GradientCase{"GruResetFirst",
                                   Node("GRU", 4, 2).Int("hidden_size", 3),
                                   {Values({4, 2, 2}), Values({1, 9, 2}, 2), Values({1, 9, 3}, 3), Values({1, 18}, 4)}},
                      GradientCase{"Rnn",
                                   Node("RNN", 3, 2).Int("hidden_size", 3),
                                   {Values({4, 2, 2}), Values({1, 3, 2}, 2), Values({1, 3, 3}, 3)}}),
    NameOf);

}  // namespace
}  // namespace tandem::training
