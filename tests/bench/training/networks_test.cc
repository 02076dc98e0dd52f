// Both ways in which a network is trained must be the same network: else a comparison says nothing.

#include "bench/training/networks.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "bench/training/onnx_networks.h"
#include "bench/training/torch_networks.h"
#include "runtimes/training/graph/fuse_nodes.h"
#include "runtimes/training/graph/program.h"
#include "tests/fakes/open_gate.h"

namespace tandem::bench {
namespace {

class Networks : public testing::TestWithParam<const char*> {};

void CopyWeights(const training::Program& program, TorchNetwork& network) {
  const auto copy = [&](const std::string& name, at::Tensor& to) {
    const auto same = program.weights().find(name);
    const auto transposed = program.weights().find(name + "_t");
    ASSERT_TRUE((same != program.weights().end()) != (transposed != program.weights().end())) << name;
    const at::Tensor from = same != program.weights().end() ? same->second.tensor : transposed->second.tensor.t();
    ASSERT_EQ(from.sizes(), to.sizes()) << name;
    to.copy_(from);
  };
  std::size_t copied = 0;
  for (auto& entry : network.named_parameters()) {
    copy(entry.key(), entry.value());
    ++copied;
  }
  for (auto& entry : network.named_buffers()) {
    if (entry.key().ends_with("num_batches_tracked")) continue;
    copy(entry.key(), entry.value());
    ++copied;
  }
  std::size_t named = 0;
  for (const auto& [name, weight] : program.weights()) named += weight.tensor.dim() > 0 ? 1 : 0;
  EXPECT_EQ(copied, named) << "each weight of the file has its counterpart";
}

TEST_P(Networks, AreTheSameInBothForms) {
  const auto network = FindNetwork(GetParam());
  ASSERT_TRUE(network) << network.error().message;
  onnx::ModelProto model = OnnxNetwork(*network, 1);
  training::FuseNodes({"scores"}, *model.mutable_graph());
  const auto program = training::Program::Compile(model, {"scores"}, training::AllOps());
  ASSERT_TRUE(program) << program.error().message;
  const auto torch_network = MakeTorchNetwork(*network);
  const at::NoGradGuard no_gradients;
  torch_network->eval();
  CopyWeights(**program, *torch_network);
  std::vector<std::int64_t> shape{2};
  shape.insert(shape.end(), network->example.begin(), network->example.end());
  const at::Tensor x = network->tokens ? at::randint(kVocabulary, shape, at::kLong) : at::randn(shape);
  OpenGate gate;
  const auto scores = (*program)->Run({}, std::vector{x}, gate);
  ASSERT_TRUE(scores) << scores.error().message;
  const at::Tensor expected = torch_network->Forward(x);
  EXPECT_EQ(scores->front().sizes(), (std::vector<std::int64_t>{2, network->classes}));
  EXPECT_LT((scores->front() - expected).abs().max().item<double>(), 1e-4 * expected.abs().max().item<double>() + 1e-5);
}

INSTANTIATE_TEST_SUITE_P(All, Networks, testing::Values("squeezenet", "resnet50", "transformer"));

TEST(Networks, AnUnknownOneIsRefused) {
  EXPECT_FALSE(FindNetwork("alexnet"));
}

}  // namespace
}  // namespace tandem::bench
