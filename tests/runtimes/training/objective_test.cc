#include "runtimes/training/learning/objective.h"

#include <cmath>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace tandem::training {
namespace {

onnx::GraphProto GraphEndingIn(const std::string& op, std::optional<std::int64_t> axis = std::nullopt) {
  onnx::GraphProto graph;
  onnx::NodeProto* const node = graph.add_node();
  node->set_op_type(op);
  node->add_input("before");
  node->add_output("y");
  if (axis) {
    onnx::AttributeProto* const attribute = node->add_attribute();
    attribute->set_name("axis");
    attribute->set_i(*axis);
  }
  graph.add_output()->set_name("y");
  graph.add_output()->set_name("other");
  return graph;
}

TEST(FindTrainedValue, IsWhatGoesIntoASoftmaxThatTheLossUndoes) {
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    const auto value = FindTrainedValue(GraphEndingIn(op), "", LossKind::kCrossEntropy);
    ASSERT_TRUE(value);
    EXPECT_EQ(value->name, "before") << op;
    EXPECT_EQ(value->form, OutputForm::kPlain) << op;
  }
  EXPECT_EQ(FindTrainedValue(GraphEndingIn("Sigmoid"), "y", LossKind::kBinaryCrossEntropy)->name, "before");
}

TEST(FindTrainedValue, IsTheOutputItselfOtherwise) {
  EXPECT_EQ(FindTrainedValue(GraphEndingIn("Relu"), "", LossKind::kCrossEntropy)->name, "y");
  EXPECT_EQ(FindTrainedValue(GraphEndingIn("Softmax"), "", LossKind::kMeanSquared)->name, "y");
  EXPECT_EQ(FindTrainedValue(GraphEndingIn("Softmax"), "other", LossKind::kCrossEntropy)->name, "other");
  // Over another dimension than the classes it is no probability of them.
  const auto value = FindTrainedValue(GraphEndingIn("Softmax", 2), "", LossKind::kCrossEntropy);
  EXPECT_EQ(value->name, "y");
  EXPECT_EQ(value->form, OutputForm::kProbabilities);
}

TEST(FindTrainedValue, AnOutputThatIsNotThereIsNamed) {
  const auto value = FindTrainedValue(GraphEndingIn("Relu"), "z", LossKind::kCrossEntropy);
  ASSERT_FALSE(value);
  EXPECT_NE(value.error().message.find("'z'"), std::string::npos);
  EXPECT_FALSE(FindTrainedValue({}, "", LossKind::kCrossEntropy));
}

double Loss(LossSpec spec, const at::Tensor& value, const at::Tensor& target, OutputForm form = OutputForm::kPlain) {
  return ComputeLoss(spec, form, value, target).item<double>();
}

TEST(ComputeLoss, CrossEntropyIsTheMeanOfMinusLogProbabilities) {
  const at::Tensor logits = at::tensor({0.0, std::log(3.0), 0.0, 0.0}, at::kDouble).reshape({2, 2});
  const at::Tensor classes = at::tensor({1, 0}, at::kLong);
  const double expected = (-std::log(0.75) - std::log(0.5)) / 2;
  EXPECT_NEAR(Loss({}, logits, classes), expected, 1e-9);
  // The same from probabilities, and with dimensions of 1 behind.
  EXPECT_NEAR(Loss({}, logits.softmax(1), classes, OutputForm::kProbabilities), expected, 1e-9);
  EXPECT_NEAR(Loss({}, logits.reshape({2, 2, 1, 1}), classes), expected, 1e-9);
}

TEST(ComputeLoss, AProbabilityOfZeroStaysFinite) {
  const at::Tensor certain = at::tensor({1.0F, 0.0F}).reshape({1, 2});
  EXPECT_TRUE(std::isfinite(Loss({}, certain, at::tensor({1}, at::kLong), OutputForm::kProbabilities)));
}

TEST(ComputeLoss, OfNumbers) {
  const at::Tensor value = at::tensor({1.0, 2.0, 5.0}, at::kDouble);
  const at::Tensor target = at::tensor({1.0F, 1.0F, 1.0F});
  EXPECT_NEAR(Loss({.kind = LossKind::kMeanSquared}, value, target), 17.0 / 3, 1e-9);
  EXPECT_NEAR(Loss({.kind = LossKind::kAbsolute}, value, target), 5.0 / 3, 1e-9);
  EXPECT_NEAR(Loss({.kind = LossKind::kHuber, .delta = 1}, value, target), (0.5 + 3.5) / 3, 1e-9);
  EXPECT_NEAR(Loss({.kind = LossKind::kBinaryCrossEntropy}, at::zeros({3}, at::kDouble), target), std::log(2), 1e-9);
  // A column and a row are the same numbers.
  EXPECT_NEAR(Loss({.kind = LossKind::kMeanSquared}, value.reshape({3, 1}), target), 17.0 / 3, 1e-9);
}

TEST(ComputeLoss, WhatDoesNotFitIsTold) {
  EXPECT_THROW(Loss({.kind = LossKind::kMeanSquared}, at::zeros({3}), at::zeros({4})), c10::Error);
  EXPECT_THROW(Loss({}, at::zeros({2, 3, 4}), at::zeros({2}, at::kLong)), c10::Error);
  EXPECT_THROW(Loss({}, at::zeros({1, 3}), at::tensor({7}, at::kLong)), c10::Error);
}

TEST(CountRight, ByTheLargestClassOrTheRightSide) {
  const at::Tensor scores = at::tensor({0.1F, 0.9F, 0.8F, 0.2F}).reshape({2, 2});
  EXPECT_EQ(CountRight(LossKind::kCrossEntropy, scores, at::tensor({1, 1}, at::kLong)), 1);
  EXPECT_EQ(CountRight(LossKind::kBinaryCrossEntropy, at::tensor({-1.0F, 2.0F, 3.0F}), at::tensor({0.0F, 1.0F, 0.0F})),
            2);
}

}  // namespace
}  // namespace tandem::training
