// What is held for gradients, and that computing it again changes no bit of anything.

#include "runtimes/training/fit/recomputer.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include "runtimes/training/graph/fuse_nodes.h"
#include "tests/fakes/open_gate.h"
#include "tests/runtimes/training/model_builder.h"

namespace tandem::training {
namespace {

struct Listed final : ReplayListener {
  void BeginAgain(std::size_t step) override { again.push_back(step); }
  void EndAgain() override { ++ends; }
  std::vector<std::size_t> again;
  int ends = 0;
};

void AddNorm(ModelBuilder& builder, const std::string& name, std::int64_t channels, const char* in, const char* out) {
  for (const char* part : {"scale", "bias", "mean"}) builder.Weight(name + part, at::randn({channels}));
  builder.Weight(name + "var", at::rand({channels}) + 0.5);
  builder.Node("BatchNormalization",
               {in, (name + "scale").c_str(), (name + "bias").c_str(), (name + "mean").c_str(), (name + "var").c_str()},
               {out});
}

// Convolutions with statistics, a residual, drop-out, pooling and views: all that has to be minded.
onnx::ModelProto Residual() {
  ModelBuilder builder;
  builder.Input("x", {-1, 3, 12, 12}).Output("y", {-1, 5});
  builder.Weight("w0", at::randn({8, 3, 3, 3})).Weight("w1", at::randn({8, 8, 1, 1}) / 8);
  builder.Weight("w3", at::randn({8 * 25, 5}) / 8).Weight("b3", at::randn({5}));
  builder.Weight("half", at::scalar_tensor(0.5)).Weight("shape", at::tensor({0L, -1L}));
  builder.Node("Conv", {"x", "w0"}, {"c0"});
  AddNorm(builder, "n0", 8, "c0", "h0");
  builder.Node("Relu", {"h0"}, {"r0"}).Node("Conv", {"r0", "w1"}, {"c1"});
  AddNorm(builder, "n1", 8, "c1", "h1");
  builder.Node("Relu", {"h1"}, {"r1"}).Node("Conv", {"r1", "w1"}, {"c2"});
  AddNorm(builder, "n2", 8, "c2", "h2");
  builder.Node("Add", {"h2", "r0"}, {"s"}).Node("Relu", {"s"}, {"r2"}).Node("Dropout", {"r2", "half"}, {"d"});
  builder.Node("MaxPool", {"d"}, {"p"}).With("kernel_shape", {2, 2}).With("strides", {2, 2});
  builder.Node("Sigmoid", {"p"}, {"g"}).Node("Mul", {"p", "g"}, {"m"}).Node("Reshape", {"m", "shape"}, {"f"});
  builder.Node("MatMul", {"f", "w3"}, {"z"}).Node("Add", {"z", "b3"}, {"y"});
  return builder.model();
}

// One head of attention, with drop-out of its weights.
onnx::ModelProto Attention() {
  ModelBuilder builder;
  builder.Input("x", {-1, 6, 16}).Output("y", {-1, 6, 16});
  for (const char* name : {"q", "k", "v", "o", "u"}) builder.Weight(name, at::randn({16, 16}) / 4);
  builder.Weight("scale", at::randn({16})).Weight("bias", at::randn({16})).Weight("tenth", at::scalar_tensor(0.1));
  builder.Node("LayerNormalization", {"x", "scale", "bias"}, {"n"}).Node("MatMul", {"n", "q"}, {"xq"});
  builder.Node("MatMul", {"n", "k"}, {"xk"}).Node("MatMul", {"n", "v"}, {"xv"});
  builder.Node("Transpose", {"xk"}, {"kt"}).With("perm", {0, 2, 1}).Node("MatMul", {"xq", "kt"}, {"a"});
  builder.Node("Softmax", {"a"}, {"p"}).Node("Dropout", {"p", "tenth"}, {"pd"}).Node("MatMul", {"pd", "xv"}, {"h"});
  builder.Node("MatMul", {"h", "o"}, {"ho"}).Node("Add", {"ho", "x"}, {"r"});
  builder.Node("LayerNormalization", {"r", "scale", "bias"}, {"n2"}).Node("MatMul", {"n2", "u"}, {"hu"});
  builder.Node("Tanh", {"hu"}, {"g"}).Node("Add", {"g", "r"}, {"y"});
  return builder.model();
}

struct Outcome {
  at::Tensor loss;
  std::map<std::string, at::Tensor> tensors;  // Gradients, and weights as they are afterwards.
  at::Tensor random;                          // Its state afterwards.
};

// One step of a model that is made anew, so that statistics begin as they were.
Outcome StepOf(const onnx::ModelProto& given, const FitPlan& plan, Listed& listed, std::size_t batch = 4) {
  onnx::ModelProto model = given;
  FuseNodes({"y"}, *model.mutable_graph());
  auto program = Program::Compile(model, {"y"}, AllOps()).value();
  for (const auto& [name, weight] : program->weights()) {
    if (weight.trainable) weight.tensor.set_requires_grad(true);
  }
  at::Generator random = at::detail::createCPUGenerator(7);
  Recomputer recomputer(*program, plan, listed);
  OpenGate gate;
  std::vector<std::int64_t> sizes = *program->inputs()[0].shape;
  sizes[0] = static_cast<std::int64_t>(batch);
  at::Generator data = at::detail::createCPUGenerator(3);
  const Tensors feeds{at::randn(sizes, data)};
  const RunMode mode{.training = true, .update_batch_norm = true, .random = random};
  recomputer.BeginRun(mode);
  Outcome outcome;
  {
    Tensors results;
    {
      const SavedTensorScope scope(recomputer);
      auto run = program->Run(mode, feeds, gate, &recomputer);
      EXPECT_TRUE(run) << run.error().message;
      results = *std::move(run);
    }
    outcome.loss = results[0].square().mean();
    results.clear();
    outcome.loss.backward();
  }
  for (const auto& [name, weight] : program->weights()) {
    outcome.tensors[name] = weight.tensor.detach().clone();
    if (weight.tensor.grad().defined()) outcome.tensors[name + " gradient"] = weight.tensor.grad();
  }
  outcome.random = random.get_state();
  return outcome;
}

std::vector<ProgramStep> StepsOf(const onnx::ModelProto& given) {
  onnx::ModelProto model = given;
  FuseNodes({"y"}, *model.mutable_graph());
  const auto program = Program::Compile(model, {"y"}, AllOps()).value();
  return {program->steps().begin(), program->steps().end()};
}

void ExpectSameBits(const Outcome& one, const Outcome& other) {
  EXPECT_TRUE(at::equal(one.loss, other.loss));
  EXPECT_TRUE(at::equal(one.random, other.random)) << "the random numbers go on elsewhere";
  ASSERT_EQ(one.tensors.size(), other.tensors.size());
  for (const auto& [name, tensor] : one.tensors) EXPECT_TRUE(at::equal(tensor, other.tensors.at(name))) << name;
}

// Segments of so many cuts each, from the first to the last.
FitPlan PlanOf(const std::vector<std::size_t>& cuts, std::size_t each, Retention retention, bool in_parts) {
  FitPlan plan;
  for (std::size_t i = 0; i + 1 < cuts.size(); i += each) {
    FitSegment segment{.begin = cuts[i], .end = cuts[std::min(i + each, cuts.size() - 1)], .retention = retention};
    for (std::size_t part = i; in_parts && part < std::min(i + each, cuts.size() - 1); ++part) {
      segment.parts.push_back(cuts[part]);
    }
    plan.segments.push_back(segment);
  }
  return plan;
}

class RecomputerTest : public testing::TestWithParam<onnx::ModelProto (*)()> {
 protected:
  RecomputerTest() {
    at::manual_seed(11);
    model_ = GetParam()();
  }
  onnx::ModelProto model_;
};

TEST_P(RecomputerTest, EveryPlanHasTheSameBits) {
  Listed none;
  const Outcome plain = StepOf(model_, {}, none);
  EXPECT_TRUE(none.again.empty());
  EXPECT_GT(plain.tensors.size(), 5U);
  const auto cuts = CutPoints(StepsOf(model_));
  ASSERT_GT(cuts.size(), 4U);
  for (const Retention retention : {Retention::kCostly, Retention::kNothing}) {
    for (const std::size_t each : {1UL, 2UL, 3UL, 100UL}) {
      for (const bool in_parts : {false, true}) {
        Listed listed;
        const Outcome outcome = StepOf(model_, PlanOf(cuts, each, retention, in_parts), listed);
        SCOPED_TRACE(testing::Message() << static_cast<int>(retention) << ", " << each << ", " << in_parts);
        ExpectSameBits(plain, outcome);
        EXPECT_FALSE(listed.again.empty());
        EXPECT_GE(listed.again.size(), static_cast<std::size_t>(listed.ends));
      }
    }
  }
}

TEST_P(RecomputerTest, InOnePartEveryStepIsComputedAgainOnceAtMost) {
  const auto cuts = CutPoints(StepsOf(model_));
  Listed listed;
  (void)StepOf(model_, PlanOf(cuts, 100, Retention::kNothing, false), listed);
  std::set<std::size_t> steps(listed.again.begin(), listed.again.end());
  EXPECT_EQ(steps.size(), listed.again.size());
  EXPECT_EQ(listed.ends, 1);

  Listed in_parts;
  (void)StepOf(model_, PlanOf(cuts, 100, Retention::kNothing, true), in_parts);
  EXPECT_GT(in_parts.again.size(), listed.again.size()) << "less is held at a time, so more is computed";
}

TEST_P(RecomputerTest, WhatIsCostlyIsNotComputedAgainWhereItIsHeld) {
  const auto steps = StepsOf(model_);
  Listed listed;
  (void)StepOf(model_, PlanOf(CutPoints(steps), 100, Retention::kCostly, false), listed);
  ASSERT_FALSE(listed.again.empty());
  for (const std::size_t step : listed.again) {
    EXPECT_NE(steps[step].op.kind, "Conv");
    EXPECT_NE(steps[step].op.kind, "MatMul");
    EXPECT_NE(steps[step].op.kind, "Dense");
  }
}

INSTANTIATE_TEST_SUITE_P(Models, RecomputerTest, testing::Values(&Residual, &Attention));

TEST(CutPoints, NoneIsBetweenAValueAndTheStepThatChangesIt) {
  const auto steps = StepsOf(Residual());
  const auto cuts = CutPoints(steps);
  const auto makers = MakersOf(steps);
  int in_place = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!steps[i].in_place) continue;
    ++in_place;
    const std::size_t maker = makers[static_cast<std::size_t>(steps[i].inputs[0])];
    for (const std::size_t cut : cuts) EXPECT_TRUE(cut <= maker || cut > i) << steps[i].op.name;
  }
  EXPECT_GE(in_place, 3);
  EXPECT_EQ(cuts.front(), 0U);
  EXPECT_EQ(cuts.back(), steps.size());
}

}  // namespace
}  // namespace tandem::training
