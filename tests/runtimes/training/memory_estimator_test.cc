// What jobs are said to take of memory, beside what they take.

#include "runtimes/training/estimate/memory_estimator.h"

#include <atomic>
#include <filesystem>
#include <optional>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "runtimes/training/graph/model_file.h"
#include "runtimes/training/trainer/trainer.h"
#include "runtimes/training/trainer/training_heap.h"
#include "tests/fakes/open_gate.h"
#include "tests/runtimes/training/model_builder.h"

namespace tandem::training {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kNumber = 4;  // Bytes.

struct Listener final : TrainerListener {
  void OnPlan(const Plan&) override {}
  void OnStep(const Step&) override {}
  void OnEvaluation(const Evaluation&) override {}
  void OnCheckpoint(const SavedCheckpoint&) override {}
  void OnSkippedCheckpoint(const fs::path&, const Error&) override {}
  void OnMemory(const MemoryUse& one) override { use = one; }
  std::optional<MemoryUse> use;
};

// 3 × 64 × 64 numbers to 10 classes, by convolutions and a dense layer.
onnx::ModelProto Pictures() {
  return ModelBuilder()
      .Input("x", {-1, 3, 64, 64})
      .Output("y", {-1, 10})
      .Weight("w1", at::randn({32, 3, 3, 3}))
      .Weight("b1", at::randn({32}))
      .Weight("w2", at::randn({64, 32, 3, 3}))
      .Weight("w3", at::randn({10, 64 * 60 * 60}))
      .Weight("b3", at::randn({10}))
      .Node("Conv", {"x", "w1", "b1"}, {"c1"})
      .Node("Relu", {"c1"}, {"r1"})
      .Node("Conv", {"r1", "w2"}, {"c2"})
      .Node("Sigmoid", {"c2"}, {"s2"})
      .Node("Flatten", {"s2"}, {"f"})
      .Node("Gemm", {"f", "w3", "b3"}, {"y"})
      .With("transB", 1)
      .model();
}

class MemoryEstimatorTest : public testing::Test {
 protected:
  MemoryEstimatorTest() : folder_(fs::temp_directory_path() / ("tandem-estimate-" + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "job");
    job_.name = "test";
    job_.model = "test";
    job_.data = {.kind = DataKind::kSynthetic, .samples = 64, .classes = 3};
    job_.optimizer = {.kind = OptimizerKind::kAdam};
    job_.batch_size = 16;
    job_.steps = 2;
  }
  ~MemoryEstimatorTest() override { fs::remove_all(folder_); }

  Result<MemoryEstimate> Estimate(const onnx::ModelProto& model) {
    EXPECT_TRUE(SaveModel(model, folder_ / "model.onnx"));
    return EstimateMemory(job_, folder_ / "model.onnx", {});
  }

  const fs::path folder_;
  TrainingJob job_;
};

TEST_F(MemoryEstimatorTest, WeightsAndTheStateOfTheOptimizerAreCountedExactly) {
  const auto adam = Estimate(SmallNetwork());
  ASSERT_TRUE(adam) << adam.error().message;
  constexpr std::uint64_t kNumbers = 4 * 8 + 8 + 8 * 3 + 3;
  EXPECT_EQ(adam->persistent.weights, kNumbers * kNumber);
  // Two of each weight; blocks are rounded.
  EXPECT_GE(adam->persistent.optimizer, 2 * kNumbers * kNumber);
  EXPECT_LE(adam->persistent.optimizer, 2 * kNumbers * kNumber + 200);
  EXPECT_EQ(adam->batch, 16);

  job_.optimizer = {.kind = OptimizerKind::kSgd};
  const auto plain = Estimate(SmallNetwork());
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_EQ(plain->persistent.optimizer, 0U);
  EXPECT_EQ(plain->persistent.weights, adam->persistent.weights);
}

TEST_F(MemoryEstimatorTest, ActivationsGrowWithTheBatchAndWeightsDoNot) {
  const auto small = Estimate(Pictures());
  job_.batch_size = 32;
  const auto large = Estimate(Pictures());
  ASSERT_TRUE(small) << small.error().message;
  ASSERT_TRUE(large);
  EXPECT_GT(large->ephemeral, small->ephemeral * 17 / 10);
  // Three of either; and what the process grows by while its source is made, which is a few pages.
  constexpr std::uint64_t kBatch = 16 * (3 * 64 * 64 * kNumber + 8);
  constexpr double kPages = 1 << 20;
  EXPECT_NEAR(static_cast<double>(small->persistent.data), 3.0 * kBatch, kPages);
  EXPECT_NEAR(static_cast<double>(large->persistent.data), 6.0 * kBatch, kPages);
  EXPECT_EQ(large->persistent.weights, small->persistent.weights);
  EXPECT_NE(large->peak.find("Conv"), std::string::npos) << large->peak;
}

TEST_F(MemoryEstimatorTest, ABatchIsNoLargerThanTheDataThatIsLearnt) {
  job_.data.samples = 10;
  job_.evaluation.split = 0.2;
  const auto estimate = Estimate(SmallNetwork());
  ASSERT_TRUE(estimate) << estimate.error().message;
  EXPECT_EQ(estimate->batch, 8);
}

TEST_F(MemoryEstimatorTest, WhatIsNotTrainedHasNeitherGradientNorState) {
  job_.trainable = {"w2"};
  const auto estimate = Estimate(SmallNetwork());
  ASSERT_TRUE(estimate) << estimate.error().message;
  EXPECT_LE(estimate->persistent.optimizer, 2 * (8 * 3 * kNumber + 16));
}

TEST_F(MemoryEstimatorTest, AnOperatorWhoseResultDependsOnNumbersIsNamed) {
  onnx::ModelProto model = ModelBuilder()
                               .Input("x", {-1, 4})
                               .Output("y", {-1, 3})
                               .Weight("w", at::randn({4, 3}))
                               .Node("NonZero", {"x"}, {"places"})
                               .Node("Cast", {"places"}, {"numbers"})
                               .With("to", onnx::TensorProto::FLOAT)
                               .Node("ReduceSum", {"numbers"}, {"sum"})
                               .Node("MatMul", {"x", "w"}, {"h"})
                               .Node("Add", {"h", "sum"}, {"y"})
                               .model();
  const auto estimate = Estimate(model);
  ASSERT_FALSE(estimate);
  EXPECT_EQ(estimate.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(estimate.error().message.find("NonZero"), std::string::npos) << estimate.error().message;
}

TEST_F(MemoryEstimatorTest, MistakesOfTheJobAreThoseThatATrainerFinds) {
  job_.trainable = {"nothing*"};
  const auto estimate = Estimate(SmallNetwork());
  ASSERT_FALSE(estimate);
  EXPECT_EQ(estimate.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(estimate.error().message.find("/trainable"), std::string::npos);
}

#ifndef TANDEM_SANITIZED  // Whose memory is not counted.
TEST_F(MemoryEstimatorTest, TheEphemeralPartIsWhatTrainingTakes) {
  KeepFreedMemory();
  job_.data.classes = 10;
  for (const std::int64_t batch : {2, 16}) {
    job_.batch_size = batch;
    fs::remove_all(folder_ / "job");
    fs::create_directories(folder_ / "job");
    const auto estimate = Estimate(Pictures());
    ASSERT_TRUE(estimate) << estimate.error().message;
    Listener listener;
    OpenGate gate;
    auto trainer = Trainer::Prepare(job_, {.model = folder_ / "model.onnx", .folder = folder_ / "job", .data_root = {}},
                                    gate, listener, RealClock::Instance());
    ASSERT_TRUE(trainer) << trainer.error().message;
    const std::atomic<bool> never{false};
    ASSERT_TRUE((*trainer)->Run(never));
    ASSERT_TRUE(listener.use);
    const double error = EstimateError(estimate->ephemeral, listener.use->ephemeral);
    EXPECT_LT(std::abs(error), 0.1) << "batch " << batch << ": " << estimate->ephemeral << " for "
                                    << listener.use->ephemeral;
  }
}
#endif

}  // namespace
}  // namespace tandem::training
