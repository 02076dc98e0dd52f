// What training changes about a node: dropout drops, and batch normalisation keeps the statistics of the batch.

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include "runtimes/training/ops/op_table.h"
#include "tests/runtimes/training/node_builder.h"

namespace tandem::training {
namespace {

Kernel KernelOf(const Node& node, int opset) {
  auto kernel = AllOps().Make(node.proto(), opset);
  EXPECT_TRUE(kernel) << kernel.error().message;
  return *std::move(kernel);
}

Tensors BatchNormInputs() {
  return {at::arange(24, at::kFloat).reshape({3, 2, 4}), at::ones({2}), at::zeros({2}), at::zeros({2}), at::ones({2})};
}

at::Tensor OfChannels(const at::Tensor& x) {
  return x.transpose(0, 1).reshape({x.size(1), -1});
}

TEST(BatchNormalization, KeepsTheStatisticsOfTheBatchInPlace) {
  const Kernel kernel = KernelOf(Node("BatchNormalization", 5).Float("momentum", 0.75F), 15);
  Tensors in = BatchNormInputs();
  const Tensors out = kernel(RunMode{.training = true, .update_batch_norm = true}, in);
  const at::Tensor mean = OfChannels(in[0]).mean(1);
  const at::Tensor variance = OfChannels(in[0]).var(1, /*unbiased=*/false);
  EXPECT_TRUE(at::allclose(in[3], mean.mul(0.25))) << "a quarter of the new, three of the old";
  EXPECT_TRUE(at::allclose(in[4], variance.mul(0.25).add(0.75), 1e-4));
  EXPECT_TRUE(at::allclose(OfChannels(out[0]).mean(1), at::zeros({2}), 1e-4, 1e-4));
}

TEST(BatchNormalization, LeavesStatisticsAloneWhenTheyAreFrozen) {
  const Kernel kernel = KernelOf(Node("BatchNormalization", 5), 15);
  Tensors in = BatchNormInputs();
  const Tensors out = kernel(RunMode{.training = true}, in);
  EXPECT_TRUE(at::equal(in[3], at::zeros({2})));
  EXPECT_TRUE(at::equal(in[4], at::ones({2})));
  EXPECT_TRUE(at::allclose(out[0], in[0], 1e-4)) << "normalised by a mean of 0 and a variance of 1";
}

TEST(Dropout, DropsWhenTheRunTrains) {
  const Kernel kernel = KernelOf(Node("Dropout", 1, 2).Float("ratio", 0.25F), 11);
  const Tensors in{at::ones({100, 100})};
  EXPECT_TRUE(at::equal(kernel(RunMode{}, in)[0], in[0]));
  const RunMode training{.training = true, .random = at::detail::createCPUGenerator(3)};
  const Tensors out = kernel(training, in);
  EXPECT_NEAR(out[1].to(at::kFloat).mean().item<double>(), 0.75, 0.03);
  EXPECT_TRUE(at::allclose(out[0], out[1].to(at::kFloat).div(0.75))) << "what is left makes up for what is dropped";
}

TEST(Dropout, DrawsFromTheGeneratorOfTheRun) {
  const Kernel kernel = KernelOf(Node("Dropout", 1), 13);
  const Tensors in{at::ones({64})};
  const auto drawn = [&](std::uint64_t seed) {
    return kernel(RunMode{.training = true, .random = at::detail::createCPUGenerator(seed)}, in)[0];
  };
  EXPECT_TRUE(at::equal(drawn(5), drawn(5)));
  EXPECT_FALSE(at::equal(drawn(5), drawn(6)));
}

}  // namespace
}  // namespace tandem::training
