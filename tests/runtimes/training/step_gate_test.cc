// Which operators a training step is told to consist of, with real gradients.

#include "runtimes/training/trainer/step_gate.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "runtimes/training/graph/program.h"
#include "tests/runtimes/training/model_builder.h"

namespace tandem::training {
namespace {

// Writes down what it is told.
struct Listed final : OpGate {
  void Announce(std::span<const OpInfo> all) override { ops.assign(all.begin(), all.end()); }
  void Begin(std::size_t op) override { begun.push_back(ops.at(op).kind); }
  void End() override { begun.emplace_back("."); }
  void Describe(std::size_t op, const OpWork& done) override { work[op] = done; }

  std::vector<OpInfo> ops;
  std::vector<std::string> begun;
  std::map<std::size_t, OpWork> work;
};

class StepGateTest : public testing::Test {
 protected:
  StepGateTest() {
    const auto model = ModelBuilder()
                           .Input("x", {-1, 4})
                           .Output("y", {-1, 3})
                           .Weight("w", at::rand({4, 8}))
                           .Weight("v", at::rand({8, 3}))
                           .Node("MatMul", {"x", "w"}, {"h"})
                           .Node("Sigmoid", {"h"}, {"s"})
                           .Node("MatMul", {"s", "v"}, {"y"})
                           .model();
    program_ = Program::Compile(model, {"y"}, AllOps()).value();
    for (const auto& [name, weight] : program_->weights()) weight.tensor.set_requires_grad(true);
    gate_ = std::make_unique<StepGate>(program_->ops(), "update", listed_);
  }
  at::Tensor Forward() {
    auto outputs = program_->Run({.training = true, .random = {}}, std::vector{at::rand({5, 4})}, *gate_);
    EXPECT_TRUE(outputs);
    gate_->BeginLoss();
    return outputs->front().square().sum();
  }
  void Step() {
    const at::Tensor loss = Forward();
    const GradientScope gradients(*gate_);
    loss.backward();
  }

  Listed listed_;
  std::unique_ptr<Program> program_;
  std::unique_ptr<StepGate> gate_;
};

TEST_F(StepGateTest, AnnouncesNodesLossGradientsAndUpdate) {
  std::vector<std::string> kinds;
  for (const OpInfo& op : listed_.ops) kinds.push_back(op.kind);
  EXPECT_EQ(kinds,
            (std::vector<std::string>{"MatMul", "Sigmoid", "MatMul", "loss", "MatMul gradient", "Sigmoid gradient",
                                      "MatMul gradient", "loss gradient", "gradients kept", "update"}));
  EXPECT_EQ(listed_.ops[4].name, listed_.ops[0].name);
}

TEST_F(StepGateTest, FindsTheNodeOfEachGradient) {
  // Numbers of autograd go on from step to step.
  Step();
  listed_.begun.clear();
  Step();
  std::vector<std::string> told;
  for (const std::string& kind : listed_.begun) {
    if (told.empty() || told.back() != kind) told.push_back(kind);
  }
  EXPECT_EQ(told,
            (std::vector<std::string>{"MatMul", "Sigmoid", "MatMul", ".", "loss", "loss gradient", "MatMul gradient",
                                      "gradients kept", "Sigmoid gradient", "MatMul gradient", "gradients kept", "."}));
}

TEST_F(StepGateTest, HearsNothingOfGradientsOutsideOfAStep) {
  const at::Tensor loss = Forward();
  listed_.begun.clear();
  loss.backward();
  EXPECT_TRUE(listed_.begun.empty());
}

TEST_F(StepGateTest, TellsOnceWhatANodeDoes) {
  Step();
  ASSERT_TRUE(listed_.work.contains(0));
  EXPECT_EQ(listed_.work[0].flops, 2.0 * 5 * 4 * 8);
  EXPECT_EQ(listed_.work[0].bytes, 4U * (5 * 4 + 4 * 8 + 5 * 8));
  EXPECT_EQ(listed_.work[1].flops, 5.0 * 8);
  EXPECT_EQ(listed_.work[4].flops, 2 * listed_.work[0].flops) << "the gradients of both factors";
  listed_.work.clear();
  Step();
  EXPECT_TRUE(listed_.work.empty());
}

}  // namespace
}  // namespace tandem::training
