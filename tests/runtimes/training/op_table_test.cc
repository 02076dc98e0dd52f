#include "runtimes/training/ops/op_table.h"

#include <gtest/gtest.h>

#include "tests/runtimes/training/node_builder.h"

namespace tandem::training {
namespace {

ErrorCode Refusal(const Node& node, int opset = 18) {
  const auto kernel = AllOps().Make(node.proto(), opset);
  EXPECT_FALSE(kernel);
  return kernel ? ErrorCode::kInternal : kernel.error().code;
}

TEST(OpTable, RefusesOperatorsItDoesNotKnow) {
  EXPECT_EQ(Refusal(Node("NonMaxSuppression", 2)), ErrorCode::kUnsupported);
  onnx::NodeProto foreign = Node("Relu", 1).proto();
  foreign.set_domain("com.example");
  EXPECT_EQ(AllOps().Make(foreign, 18).error().code, ErrorCode::kUnsupported);
}

TEST(OpTable, RefusesAttributesThatNoKernelReads) {
  EXPECT_EQ(Refusal(Node("Relu", 1).Int("saturation", 1)), ErrorCode::kUnsupported);
}

TEST(OpTable, RefusesAttributesOfAnotherType) {
  EXPECT_EQ(Refusal(Node("Softmax", 1).Float("axis", 1.0F)), ErrorCode::kInvalidArgument);
}

TEST(OpTable, RefusesNodesWithTooFewOrTooManyInputs) {
  EXPECT_EQ(Refusal(Node("Add", 1)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(Refusal(Node("Add", 3)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(Refusal(Node("Add", 2).Omit(1)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(Refusal(Node("Relu", 1, 2)), ErrorCode::kInvalidArgument);
}

TEST(OpTable, RefusesFormsThatCannotBeHad) {
  EXPECT_EQ(Refusal(Node("RoiAlign", 3).Text("mode", "max")), ErrorCode::kUnsupported);
  EXPECT_EQ(Refusal(Node("BatchNormalization", 5).Int("spatial", 0), 8), ErrorCode::kUnsupported);
  EXPECT_EQ(Refusal(Node("MaxPool", 1).Ints("kernel_shape", {2, 2, 2, 2})), ErrorCode::kUnsupported);
}

TEST(OpTable, RefusesAttributesOutOfRange) {
  EXPECT_EQ(Refusal(Node("Conv", 2).Ints("strides", {0, 1})), ErrorCode::kInvalidArgument);
  EXPECT_EQ(Refusal(Node("Conv", 2).Ints("pads", {-1, 0, 0, 0})), ErrorCode::kInvalidArgument);
  EXPECT_EQ(Refusal(Node("Conv", 2).Ints("pads", {0, 0, 0, 0}).Ints("strides", {1})), ErrorCode::kInvalidArgument);
  EXPECT_EQ(Refusal(Node("Resize", 2).Text("mode", "quadratic")), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace tandem::training
