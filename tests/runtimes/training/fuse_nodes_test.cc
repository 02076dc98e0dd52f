#include "runtimes/training/graph/fuse_nodes.h"

#include <map>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtimes/training/graph/program.h"
#include "tests/fakes/open_gate.h"
#include "tests/runtimes/training/model_builder.h"

namespace tandem::training {
namespace {

using testing::ElementsAre;

std::vector<std::string> OpsOf(const onnx::ModelProto& model) {
  std::vector<std::string> ops;
  for (const auto& node : model.graph().node()) ops.push_back(node.op_type());
  return ops;
}

onnx::ModelProto Fused(onnx::ModelProto model, const std::string& wanted = "y") {
  FuseNodes({wanted}, *model.mutable_graph());
  return model;
}

struct Learnt {
  at::Tensor value;
  std::map<std::string, at::Tensor> gradients;
};

// What comes out for `x`, and the gradients of a sum over it that weighs each number otherwise.
Learnt Learn(const onnx::ModelProto& model, const at::Tensor& x) {
  const auto program = Program::Compile(model, {"y"}, AllOps());
  EXPECT_TRUE(program) << program.error().message;
  if (!program) return {};
  for (const auto& [name, weight] : (*program)->weights()) {
    if (weight.trainable) weight.tensor.set_requires_grad(true);
  }
  OpenGate gate;
  const auto out = (*program)->Run({.training = true, .random = {}}, std::vector{x}, gate);
  EXPECT_TRUE(out) << out.error().message;
  if (!out) return {};
  const at::Tensor weights = at::linspace(-1, 2, out->front().numel()).reshape(out->front().sizes());
  (out->front() * weights).sum().backward();
  Learnt learnt{.value = out->front().detach(), .gradients = {}};
  for (const auto& [name, weight] : (*program)->weights()) {
    if (weight.tensor.requires_grad()) learnt.gradients.emplace(name, weight.tensor.grad());
  }
  return learnt;
}

void ExpectTheSame(const onnx::ModelProto& model, const at::Tensor& x) {
  const Learnt plain = Learn(model, x);
  const Learnt fused = Learn(Fused(model), x);
  ASSERT_TRUE(plain.value.defined() && fused.value.defined());
  EXPECT_TRUE(at::allclose(plain.value, fused.value, 1e-5, 1e-6));
  for (const auto& [name, gradient] : plain.gradients) {
    ASSERT_TRUE(fused.gradients.contains(name)) << name;
    EXPECT_TRUE(at::allclose(gradient, fused.gradients.at(name), 1e-4, 1e-6)) << name;
  }
}

ModelBuilder Builder() {
  ModelBuilder builder;
  builder.Input("x", {-1, 3, 4}).Output("y", {-1, 3, 6});
  builder.Weight("w", at::linspace(-1, 1, 24).reshape({4, 6})).Weight("b", at::linspace(0, 1, 6));
  builder.Weight("root", at::scalar_tensor(std::sqrt(2.0F))).Weight("one", at::scalar_tensor(1.0F));
  builder.Weight("half", at::scalar_tensor(0.5F));
  return builder;
}

const at::Tensor kInput = at::linspace(-3, 3, 24).reshape({2, 3, 4});

TEST(FuseNodes, ProductAndBiasBecomeADenseLayer) {
  const auto model = Builder().Node("MatMul", {"x", "w"}, {"p"}).Node("Add", {"b", "p"}, {"y"}).model();
  EXPECT_THAT(OpsOf(Fused(model)), ElementsAre("Dense"));
  ExpectTheSame(model, kInput);
}

TEST(FuseNodes, AProductThatOthersReadStays) {
  const auto model =
      Builder().Node("MatMul", {"x", "w"}, {"p"}).Node("Add", {"b", "p"}, {"s"}).Node("Mul", {"s", "p"}, {"y"}).model();
  EXPECT_THAT(OpsOf(Fused(model)), ElementsAre("MatMul", "Add", "Mul"));
  const auto wanted = Builder().Node("MatMul", {"x", "w"}, {"p"}).Node("Add", {"b", "p"}, {"y"}).model();
  EXPECT_THAT(OpsOf(Fused(wanted, "p")), ElementsAre("MatMul", "Add"));
}

TEST(FuseNodes, WhatIsAddedMustBeABias) {
  auto builder = Builder();
  builder.Weight("wide", at::ones({3, 6}));
  const auto model = builder.Node("MatMul", {"x", "w"}, {"p"}).Node("Add", {"p", "wide"}, {"y"}).model();
  EXPECT_THAT(OpsOf(Fused(model)), ElementsAre("MatMul", "AddInPlace"));
  ExpectTheSame(model, kInput);
}

TEST(FuseNodes, GeluIsKnownInBothSpellings) {
  const auto last = Builder()
                        .Node("MatMul", {"x", "w"}, {"p"})
                        .Node("Div", {"p", "root"}, {"d"})
                        .Node("Erf", {"d"}, {"e"})
                        .Node("Add", {"e", "one"}, {"s"})
                        .Node("Mul", {"p", "s"}, {"m"})
                        .Node("Mul", {"m", "half"}, {"y"})
                        .model();
  EXPECT_THAT(OpsOf(Fused(last)), ElementsAre("MatMul", "Gelu"));
  ExpectTheSame(last, kInput);
  auto builder = Builder();
  builder.Weight("inverse", at::scalar_tensor(std::sqrt(0.5F)));
  const auto first = builder.Node("MatMul", {"x", "w"}, {"p"})
                         .Node("Mul", {"half", "p"}, {"h"})
                         .Node("Mul", {"p", "inverse"}, {"d"})
                         .Node("Erf", {"d"}, {"e"})
                         .Node("Add", {"one", "e"}, {"s"})
                         .Node("Mul", {"s", "h"}, {"y"})
                         .model();
  EXPECT_THAT(OpsOf(Fused(first)), ElementsAre("MatMul", "Gelu"));
  ExpectTheSame(first, kInput);
}

TEST(FuseNodes, WhatOnlyLooksLikeGeluStays) {
  const auto other_scale = Builder()
                               .Node("MatMul", {"x", "w"}, {"p"})
                               .Node("Div", {"p", "half"}, {"d"})
                               .Node("Erf", {"d"}, {"e"})
                               .Node("Add", {"e", "one"}, {"s"})
                               .Node("Mul", {"p", "s"}, {"m"})
                               .Node("Mul", {"m", "half"}, {"y"})
                               .model();
  EXPECT_EQ(Fused(other_scale).graph().node_size(), other_scale.graph().node_size());
  ExpectTheSame(other_scale, kInput);
  // √2 / x is not x / √2.
  const auto turned = Builder()
                          .Node("MatMul", {"x", "w"}, {"p"})
                          .Node("Div", {"root", "p"}, {"d"})
                          .Node("Erf", {"d"}, {"e"})
                          .Node("Add", {"e", "one"}, {"s"})
                          .Node("Mul", {"p", "s"}, {"m"})
                          .Node("Mul", {"m", "half"}, {"y"})
                          .model();
  EXPECT_EQ(Fused(turned).graph().node_size(), turned.graph().node_size());
}

TEST(FuseNodes, SumsAndReluTakeThePlaceOfWhatNobodyNeeds) {
  const auto model = Builder()
                         .Node("MatMul", {"x", "w"}, {"p"})
                         .Node("Add", {"p", "b"}, {"d"})
                         .Node("Relu", {"d"}, {"r"})
                         .Node("Sigmoid", {"r"}, {"s"})
                         .Node("Add", {"s", "r"}, {"a"})
                         .Node("Relu", {"a"}, {"y"})
                         .model();
  // The sigmoid's gradient needs what it made, and the first Relu's is read twice.
  EXPECT_THAT(OpsOf(Fused(model)), ElementsAre("Dense", "ReluInPlace", "Sigmoid", "Add", "ReluInPlace"));
  ExpectTheSame(model, kInput);
}

TEST(FuseNodes, ASumThatGrowsIsMadeAnew) {
  auto builder = Builder();
  builder.Weight("many", at::linspace(0, 1, 36).reshape({2, 3, 6}));
  const auto model = builder.Node("MatMul", {"x", "w"}, {"p"})
                         .Node("ReduceSum", {"p"}, {"s"})
                         .Node("Sub", {"s", "one"}, {"f"})
                         .Node("Add", {"f", "many"}, {"y"})
                         .model();
  EXPECT_THAT(OpsOf(Fused(model)), ElementsAre("MatMul", "ReduceSum", "Sub", "AddInPlace"));
  ExpectTheSame(model, kInput);
}

TEST(FuseNodes, WhatIsComputedOnceIsNotWrittenTo) {
  const auto model = ModelBuilder()
                         .Input("x", {2})
                         .Output("y", {2})
                         .Weight("whole", at::tensor({1, 3}, at::kLong))
                         .Node("Cast", {"whole"}, {"f"})
                         .With("to", onnx::TensorProto::FLOAT)
                         .Node("Add", {"f", "f"}, {"c"})
                         .Node("Sigmoid", {"x"}, {"s"})
                         .Node("Add", {"c", "s"}, {"y"})
                         .model();
  const onnx::ModelProto fused = Fused(model);
  ASSERT_EQ(OpsOf(fused).back(), "AddInPlace");
  const auto program = Program::Compile(fused, {"y"}, AllOps());
  ASSERT_TRUE(program) << program.error().message;
  OpenGate gate;
  for (int run = 0; run < 3; ++run) {
    const auto out = (*program)->Run({}, std::vector{at::zeros({2})}, gate);
    ASSERT_TRUE(out) << out.error().message;
    EXPECT_TRUE(at::equal(out->front(), at::tensor({2.5F, 6.5F}))) << "in run " << run;
  }
}

TEST(FuseNodes, InputsAndWeightsAreNeverWrittenTo) {
  const auto model = ModelBuilder()
                         .Input("x", {-1, 2})
                         .Output("y", {-1, 2})
                         .Weight("w", at::ones({2}))
                         .Node("Relu", {"x"}, {"r"})
                         .Node("Add", {"w", "r"}, {"y"})
                         .model();
  EXPECT_THAT(OpsOf(Fused(model)), ElementsAre("Relu", "Add"));
}

TEST(FuseNodes, NodesThatOnlyItWritesAreCheckedAll) {
  onnx::NodeProto node;
  node.set_domain(std::string(kFusedDomain));
  node.set_op_type("Dense");
  node.add_input("x");
  node.add_output("y");
  EXPECT_EQ(FusedKernel(node, true).error().code, ErrorCode::kUnsupported);
  node.set_op_type("Other");
  EXPECT_THAT(FusedKernel(node, true).error().message, testing::HasSubstr("tandem.fused.Other"));
}

}  // namespace
}  // namespace tandem::training
