#include "runtimes/training/graph/program.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "runtimes/training/graph/fixed_inputs.h"
#include "runtimes/training/graph/free_batch.h"
#include "runtimes/training/graph/model_file.h"
#include "runtimes/training/graph/replace_head.h"
#include "runtimes/training/ops/tensor_proto.h"
#include "tests/fakes/open_gate.h"
#include "tests/runtimes/training/model_builder.h"

namespace tandem::training {
namespace {

std::string WhyNot(const onnx::ModelProto& model, const std::vector<std::string>& wanted = {"y"}) {
  const auto program = Program::Compile(model, wanted, AllOps());
  return program ? "" : program.error().message;
}

at::Tensor RunOne(const onnx::ModelProto& model, const at::Tensor& x, OpGate& gate, const std::string& wanted = "y") {
  const auto program = Program::Compile(model, {wanted}, AllOps());
  EXPECT_TRUE(program) << program.error().message;
  const auto out = (*program)->Run({}, std::vector{x}, gate);
  EXPECT_TRUE(out) << out.error().message;
  return out ? out->front() : at::Tensor();
}

TEST(Program, AsksTheGateBeforeEachNode) {
  OpenGate gate;
  RunOne(SmallNetwork(), at::ones({2, 4}), gate);
  EXPECT_EQ(gate.passed, 4);
}

TEST(Program, ComputesOnlyWhatIsWanted) {
  OpenGate gate;
  RunOne(SmallNetwork(), at::ones({2, 4}), gate, "h");
  EXPECT_EQ(gate.passed, 1);
}

TEST(Program, ConstantsAreComputedOnce) {
  const auto model = ModelBuilder()
                         .Input("x", {-1, 2})
                         .Output("y", {-1, 2})
                         .Weight("one", at::tensor({1}, at::kLong))
                         .Weight("two", at::tensor({2}, at::kLong))
                         .Node("Sub", {"two", "one"}, {"shape"})
                         .Node("ConstantOfShape", {"shape"}, {"filled"})
                         .Node("Add", {"x", "filled"}, {"y"})
                         .model();
  OpenGate gate;
  EXPECT_TRUE(at::equal(RunOne(model, at::ones({3, 2}), gate), at::ones({3, 2})));
  EXPECT_EQ(gate.passed, 1);
}

TEST(Program, WeightsAreLearntAndStatisticsAreNot) {
  const auto model = ModelBuilder()
                         .Input("x", {-1, 2})
                         .Output("y", {-1, 2})
                         .Weight("scale", at::ones({2}))
                         .Weight("shift", at::zeros({2}))
                         .Weight("mean", at::zeros({2}))
                         .Weight("variance", at::ones({2}))
                         .Weight("eps", at::scalar_tensor(1e-3))
                         .Node("BatchNormalization", {"x", "scale", "shift", "mean", "variance"}, {"n"})
                         .Node("Add", {"n", "eps"}, {"y"})
                         .model();
  const auto program = Program::Compile(model, {"y"}, AllOps());
  ASSERT_TRUE(program) << program.error().message;
  std::vector<std::string> trainable;
  for (const auto& [name, weight] : (*program)->weights()) {
    if (weight.trainable) trainable.push_back(name);
  }
  EXPECT_EQ(trainable, (std::vector<std::string>{"scale", "shift"}));
}

// Exporters keep equal tensors once: "zeros" is the shift of one layer and the mean of both, behind Identity nodes.
onnx::ModelProto NormalizedTwice() {
  return ModelBuilder()
      .Input("x", {-1, 2})
      .Output("y", {-1, 2})
      .Weight("ones", at::ones({2}))
      .Weight("zeros", at::zeros({2}))
      .Weight("scale", at::ones({2}))
      .Node("Identity", {"zeros"}, {"mean1"})
      .Node("Identity", {"ones"}, {"ones1"})
      .Node("Identity", {"ones1"}, {"variance1"})
      .Node("Identity", {"zeros"}, {"mean2"})
      .Node("Identity", {"ones"}, {"variance2"})
      .Node("BatchNormalization", {"x", "scale", "zeros", "mean1", "variance1"}, {"n"})
      .Node("BatchNormalization", {"n", "scale", "zeros", "mean2", "variance2"}, {"y"})
      .model();
}

TEST(Program, StatisticsBehindIdentityNodesAreTensorsOfTheirOwn) {
  onnx::ModelProto model = NormalizedTwice();
  GiveFixedInputsTheirOwn(*model.mutable_graph());
  const auto program = Program::Compile(model, {"y"}, AllOps());
  ASSERT_TRUE(program) << program.error().message;
  std::vector<std::string> trainable;
  std::vector<std::string> statistics;
  for (const auto& [name, weight] : (*program)->weights()) {
    if (weight.trainable) trainable.push_back(name);
    if (weight.statistic) statistics.push_back(name);
    EXPECT_FALSE(weight.statistic && weight.shared) << name;
  }
  EXPECT_EQ(trainable, (std::vector<std::string>{"scale", "zeros"}));
  EXPECT_EQ(statistics, (std::vector<std::string>{"mean1", "mean2", "variance1", "variance2"}));

  OpenGate gate;
  const at::Tensor x = at::arange(8, at::kFloat).reshape({4, 2});
  const RunMode mode{.training = true, .update_batch_norm = true};
  ASSERT_TRUE((*program)->Run(mode, std::vector{x}, gate));
  const auto& weights = (*program)->weights();
  EXPECT_TRUE(at::allclose(weights.at("mean1").tensor, x.mean(0).mul(0.1)));
  EXPECT_TRUE(at::allclose(weights.at("mean2").tensor, at::zeros({2}), 1e-4, 1e-4))
      << "of what the first has normalised";
  EXPECT_TRUE(at::equal(weights.at("zeros").tensor, at::zeros({2})));
}

TEST(Program, AStatisticThatTwoLayersReadDirectlyIsMarked) {
  const auto model = ModelBuilder()
                         .Input("x", {-1, 2})
                         .Output("y", {-1, 2})
                         .Weight("ones", at::ones({2}))
                         .Weight("zeros", at::zeros({2}))
                         .Node("BatchNormalization", {"x", "ones", "zeros", "zeros", "ones"}, {"y"})
                         .model();
  const auto program = Program::Compile(model, {"y"}, AllOps());
  ASSERT_TRUE(program) << program.error().message;
  for (const auto& [name, weight] : (*program)->weights()) {
    EXPECT_TRUE(weight.statistic && weight.shared && !weight.trainable) << name;
  }
}

TEST(Program, WeightsOfClassesAreNotLearnt) {
  const auto with = [](const char* weights) {
    return ModelBuilder()
        .Input("x", {-1, 3})
        .Output("loss", {})
        .Weight("w", at::ones({3, 3}))
        .Weight("classes", at::ones({3}))
        .Weight("labels", at::tensor({0, 2}, at::kLong))
        .Node("Identity", {"classes"}, {"handed"})
        .Node("MatMul", {"x", "w"}, {"scores"})
        .Node("SoftmaxCrossEntropyLoss", {"scores", "labels", weights}, {"loss"})
        .model();
  };
  for (const char* weights : {"classes", "handed"}) {
    onnx::ModelProto model = with(weights);
    GiveFixedInputsTheirOwn(*model.mutable_graph());
    const auto program = Program::Compile(model, {"loss"}, AllOps());
    ASSERT_TRUE(program) << program.error().message;
    std::vector<std::string> trainable;
    for (const auto& [name, weight] : (*program)->weights()) {
      if (weight.trainable) trainable.push_back(name);
    }
    EXPECT_EQ(trainable, std::vector<std::string>{"w"}) << weights;
  }
}

TEST(Program, NamesTheNodeThatIsWrong) {
  const auto with = [](const char* op, std::initializer_list<const char*> inputs,
                       std::initializer_list<const char*> outputs = {"y"}) {
    return ModelBuilder().Input("x", {-1, 2}).Output("y", {-1, 2}).Node(op, inputs, outputs).model();
  };
  EXPECT_NE(WhyNot(with("Nonsense", {"x"})).find("Nonsense node 'y'"), std::string::npos);
  EXPECT_NE(WhyNot(with("Relu", {"gone"})).find("'gone'"), std::string::npos);
  EXPECT_NE(WhyNot(with("Relu", {"x"}, {"x"}), {"x"}).find("there already"), std::string::npos);
  EXPECT_NE(WhyNot(with("Relu", {"x"}), {"z"}).find("'z'"), std::string::npos);
}

TEST(Program, RefusesInputsThatDoNotFit) {
  const auto program = Program::Compile(SmallNetwork(), {"y"}, AllOps());
  OpenGate gate;
  for (const at::Tensor& x : {at::ones({2, 5}), at::ones({4}), at::ones({2, 4}, at::kDouble)}) {
    const auto out = (*program)->Run({}, std::vector{x}, gate);
    ASSERT_FALSE(out);
    EXPECT_EQ(out.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(out.error().message.find("'x'"), std::string::npos);
  }
  EXPECT_FALSE((*program)->Run({}, {}, gate));
  EXPECT_EQ(gate.passed, 0);
}

TEST(FreeBatch, AModelForOneTakesMany) {
  auto model = ModelBuilder()
                   .Input("x", {1, 2, 3})
                   .Output("y", {1, 6})
                   .Weight("shape", at::tensor({1, 6}, at::kLong))
                   .Node("Reshape", {"x", "shape"}, {"y"})
                   .model();
  FreeBatchDimension(*model.mutable_graph());
  OpenGate gate;
  EXPECT_EQ(RunOne(model, at::ones({5, 2, 3}), gate).sizes().vec(), (std::vector<std::int64_t>{5, 6}));
}

TEST(PutWeights, ChangesWeightsAndNothingElse) {
  onnx::ModelProto model = SmallNetwork();
  const std::size_t nodes = static_cast<std::size_t>(model.graph().node_size());
  ASSERT_TRUE(PutWeights({{"b2", at::full({3}, 7.0)}}, model));
  EXPECT_EQ(static_cast<std::size_t>(model.graph().node_size()), nodes);
  for (const auto& tensor : model.graph().initializer()) {
    const bool changed = tensor.name() == "b2";
    EXPECT_EQ(at::equal(ReadTensor(tensor).value(), at::full({3}, 7.0)), changed) << tensor.name();
  }
  EXPECT_FALSE(PutWeights({{"nobody", at::zeros({1})}}, model));
}

TEST(PutWeights, AFilledWeightBecomesOneOfItsOwn) {
  auto model = ModelBuilder()
                   .Input("x", {-1, 2})
                   .Output("y", {-1, 2})
                   .Weight("shape", at::tensor({2}, at::kLong))
                   .Node("ConstantOfShape", {"shape"}, {"w"})
                   .Node("Mul", {"x", "w"}, {"y"})
                   .model();
  ASSERT_TRUE(PutWeights({{"w", at::full({2}, 3.0)}}, model));
  OpenGate gate;
  EXPECT_TRUE(at::equal(RunOne(model, at::ones({1, 2}), gate), at::full({1, 2}, 3.0)));
}

TEST(ReplaceHead, GivesTheLastLayerAsManyClassesAsAsked) {
  onnx::ModelProto model = SmallNetwork();
  ASSERT_TRUE(ReplaceHead({.output = "", .classes = 5}, 1, model));
  EXPECT_EQ(model.graph().output(0).type().tensor_type().shape().dim(1).dim_value(), 5);
  OpenGate gate;
  const at::Tensor y = RunOne(model, at::ones({2, 4}), gate);
  EXPECT_EQ(y.sizes().vec(), (std::vector<std::int64_t>{2, 5}));
  onnx::ModelProto again = SmallNetwork();
  ASSERT_TRUE(ReplaceHead({.output = "y", .classes = 5}, 1, again));
  EXPECT_EQ(again.SerializeAsString(), model.SerializeAsString()) << "the same seed makes the same weights";
}

TEST(ReplaceHead, SaysWhenThereIsNoSuchLayer) {
  auto model = ModelBuilder().Input("x", {-1, 2}).Output("y", {-1, 2}).Node("Exp", {"x"}, {"y"}).model();
  const Status status = ReplaceHead({.output = "", .classes = 5}, 1, model);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("/replace_head"), std::string::npos);
  EXPECT_FALSE(ReplaceHead({.output = "z", .classes = 5}, 1, model));
}

}  // namespace
}  // namespace tandem::training
