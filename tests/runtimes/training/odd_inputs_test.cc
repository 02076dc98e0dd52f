// Whatever a node is given, its kernel computes or throws: no operator reads outside its inputs or ends the process.

#include <limits>
#include <map>
#include <random>
#include <string>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "runtimes/training/ops/op_table.h"
#include "tests/runtimes/training/node_builder.h"

namespace tandem::training {
namespace {

// Small, so that nothing large comes of numbers that an operator takes for sizes.
std::vector<at::Tensor> OddTensors() {
  constexpr std::int64_t kLow = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kHigh = std::numeric_limits<std::int64_t>::max();
  const auto whole = [](std::vector<std::int64_t> values) { return at::tensor(values, at::kLong); };
  return {
      at::scalar_tensor(1.5),
      at::empty({0}),
      at::ones({3}),
      at::ones({2, 3}),
      at::empty({2, 0}),
      at::ones({1, 2, 4}),
      at::ones({1, 2, 0, 4}),
      at::ones({1, 4, 4, 4}),
      at::ones({2, 1, 3, 3}),
      at::ones({1, 1, 2, 2, 2}),
      at::full({2, 2}, std::numeric_limits<float>::quiet_NaN()),
      at::scalar_tensor(std::int64_t{-1}, at::kLong),
      at::scalar_tensor(kLow, at::kLong),
      at::scalar_tensor(kHigh, at::kLong),
      whole({}),
      whole({0}),
      whole({-1}),
      whole({1, 2}),
      whole({-3, 5, 0}),
      whole({kLow, kHigh}),
      whole({kHigh, -1, kLow, 0}),
      whole({1, 2, 3, 3}),
      at::full({2, 2}, kLow, at::kLong),
      at::full({2, 3}, -1, at::kLong),
      at::full({2, 3}, 7, at::kInt),
      at::full({3}, true, at::kBool),
      at::full({2, 2}, std::int64_t{200}, at::kByte),
  };
}

// Attributes that a node must have, and some that lead elsewhere.
std::vector<Node> NodesOf(const std::string& op, int inputs) {
  const Node plain(op, inputs, op == "LSTM" ? 3 : op == "TopK" || op == "GRU" || op == "Split" ? 2 : 1);
  std::vector<Node> nodes{plain};
  const auto with = [&nodes](Node node) { nodes.push_back(std::move(node)); };
  if (op.ends_with("Pool") || op == "MaxUnpool") {
    with(Node(plain).Ints("kernel_shape", {2, 2}));
    with(Node(plain).Ints("kernel_shape", {3, 3}).Ints("pads", {7, 0, 1, 9}));
    with(Node(plain).Ints("kernel_shape", {2147483647, 2147483647}).Ints("pads", {2147483647, 0, 0, 0}));
    with(Node(plain).Ints("kernel_shape", {2}).Text("auto_pad", "SAME_UPPER"));
  }
  if (op.starts_with("Conv")) {
    with(Node(plain).Int("group", 2));
    with(Node(plain).Text("auto_pad", "SAME_LOWER").Ints("strides", {3, 2}));
    with(Node(plain).Ints("strides", {2147483647, 1}).Ints("dilations", {2147483647, 2147483647}));
  }
  if (op == "LSTM" || op == "GRU" || op == "RNN") with(Node(plain).Int("hidden_size", 1));
  if (op == "Concat" || op == "Gather" || op == "GatherElements" || op.starts_with("Scatter") || op == "Softmax") {
    with(Node(plain).Int("axis", 1));
    with(Node(plain).Int("axis", std::numeric_limits<std::int64_t>::min()));
  }
  if (op == "GatherND") with(Node(plain).Int("batch_dims", 1));
  if (op == "Pad") with(Node(plain).Text("mode", "reflect"));
  if (op == "Resize")
    with(Node(plain).Text("mode", "linear").Text("coordinate_transformation_mode", "tf_crop_and_resize"));
  if (op == "BitShift") with(Node(plain).Text("direction", "LEFT"));
  if (op == "Mod") with(Node(plain).Int("fmod", 1));
  if (op == "Einsum") with(Node(plain).Text("equation", "ij,jk->ik"));
  if (op == "DepthToSpace" || op == "SpaceToDepth") with(Node(plain).Int("blocksize", 2));
  if (op == "GroupNormalization") with(Node(plain).Int("num_groups", 2));
  if (op == "LRN") with(Node(plain).Int("size", 3));
  if (op == "BatchNormalization") with(Node(plain).Int("training_mode", 1));
  if (op == "EyeLike") with(Node(plain).Int("k", std::numeric_limits<std::int64_t>::min()));
  if (op == "Cast") with(Node(plain).Int("to", onnx::TensorProto::INT64));
  return nodes;
}

// Forwards, and backwards where that is possible.
void Compute(const Kernel& kernel, const Tensors& in) {
  for (const at::Tensor& output : kernel(RunMode{}, in)) {
    if (output.defined() && output.requires_grad()) output.sum().backward({}, /*retain_graph=*/true);
  }
}

class OddInputsTest : public ::testing::TestWithParam<std::string> {};

TEST_P(OddInputsTest, AreComputedOrRefused) {
  const auto odd = OddTensors();
  std::mt19937 random(7);
  std::uniform_int_distribution<std::size_t> any(0, odd.size() - 1);
  int computed = 0;
  int refused = 0;
  for (int inputs = 0; inputs <= 6; ++inputs) {
    for (const Node& node : NodesOf(GetParam(), inputs)) {
      const auto kernel = AllOps().Make(node.proto(), 18);
      if (!kernel) {
        ++refused;
        continue;
      }
      // All pairs would do for most; more inputs are tried by chance.
      for (int trial = 0; trial < (inputs <= 1 ? 60 : 150); ++trial) {
        Tensors in;
        for (int i = 0; i < inputs; ++i) {
          in.push_back(odd[any(random)].clone());
          if (at::isFloatingType(in.back().scalar_type())) in.back().requires_grad_(true);
        }
        try {
          Compute(*kernel, in);
          ++computed;
        } catch (const std::exception&) {
          ++refused;
        }
      }
    }
  }
  EXPECT_GT(computed + refused, 0);
}

INSTANTIATE_TEST_SUITE_P(AllOps, OddInputsTest, ::testing::ValuesIn(AllOps().Names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tandem::training
