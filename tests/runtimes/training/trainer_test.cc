// Whole runs on small data: what is learnt, what stays, and that an interrupted run ends as if nothing had happened.

#include "runtimes/training/trainer/trainer.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "runtimes/training/graph/model_file.h"
#include "runtimes/training/ops/tensor_proto.h"
#include "tests/fakes/open_gate.h"
#include "tests/runtimes/training/model_builder.h"

namespace tandem::training {
namespace {

namespace fs = std::filesystem;

struct Notes final : TrainerListener {
  void OnPlan(const Plan& one) override { plan = one; }
  void OnStep(const Step& one) override {
    steps.push_back(one);
    if (interrupt_after == one.step) interrupt = true;
  }
  void OnEvaluation(const Evaluation& one) override { evaluations.push_back(one); }
  void OnCheckpoint(const SavedCheckpoint& one) override { EXPECT_TRUE(one.size) << one.size.error().message; }
  void OnSkippedCheckpoint(const fs::path& file, const Error&) override { skipped.push_back(file.filename()); }

  Plan plan;
  std::vector<Step> steps;
  std::vector<Evaluation> evaluations;
  std::vector<std::string> skipped;
  std::int64_t interrupt_after = -1;
  std::atomic<bool> interrupt = false;
};

class TrainerTest : public testing::Test {
 protected:
  TrainerTest() : folder_(fs::temp_directory_path() / ("tandem-trainer-" + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "job");
    EXPECT_TRUE(SaveModel(SmallNetwork(), folder_ / "model.onnx"));
    // Three classes that a line can part.
    std::ofstream csv(folder_ / "data.csv");
    csv << "a,b,c,d,class\n";
    for (int i = 0; i < 90; ++i) {
      const int label = i % 3;
      csv << (label == 0) + 0.01 * (i % 7) << ',' << (label == 1) - 0.01 * (i % 5) << ',' << (label == 2) << ','
          << 0.1 * (i % 4) << ',' << label << '\n';
    }
  }
  ~TrainerTest() override { fs::remove_all(folder_); }

  static TrainingJob Job() {
    TrainingJob job;
    job.name = "test";
    job.model = "small";
    job.data = {.kind = DataKind::kCsv, .path = "data.csv", .target = "class"};
    job.optimizer.learning_rate = 0.05;
    job.batch_size = 10;
    job.epochs = 10;
    job.evaluation.split = 0.2;
    job.seed = 3;
    return job;
  }

  Result<TrainingEnd> Run(const TrainingJob& job, Notes& notes) {
    const TrainerPaths paths{.model = folder_ / "model.onnx", .folder = folder_ / "job", .data_root = folder_};
    TANDEM_ASSIGN(const auto trainer, Trainer::Prepare(job, paths, gate_, notes, clock_));
    return trainer->Run(notes.interrupt);
  }
  // The weights that the run ended with.
  std::map<std::string, at::Tensor> Weights() {
    std::map<std::string, at::Tensor> weights;
    const auto model = LoadModel(folder_ / "job" / "model.onnx");
    EXPECT_TRUE(model);
    for (const auto& tensor : model->graph().initializer()) weights[tensor.name()] = ReadTensor(tensor).value();
    return weights;
  }
  void ForgetJob() {
    fs::remove_all(folder_ / "job");
    fs::create_directory(folder_ / "job");
  }

  const fs::path folder_;
  OpenGate gate_;
  FakeClock clock_;
};

TEST_F(TrainerTest, Learns) {
  Notes notes;
  const auto end = Run(Job(), notes);
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(*end, TrainingEnd::kFinished);
  EXPECT_EQ(notes.plan.examples, 72);
  EXPECT_EQ(notes.plan.evaluation_examples, 18);
  EXPECT_EQ(notes.plan.total_steps, 80);
  EXPECT_EQ(notes.plan.parameters, 4 * 8 + 8 + 8 * 3 + 3);
  EXPECT_EQ(notes.steps.size(), 80U);
  EXPECT_LT(notes.steps.back().loss, notes.steps.front().loss / 2);
  EXPECT_EQ(notes.evaluations.size(), 11U) << "before the first step and after each epoch";
  EXPECT_GT(*notes.evaluations.back().accuracy, 0.9);
}

TEST_F(TrainerTest, FrozenWeightsStayAsTheyAre) {
  TrainingJob job = Job();
  job.trainable = {"w2", "b?"};
  Notes notes;
  ASSERT_TRUE(Run(job, notes));
  const auto weights = Weights();
  std::set<std::string> changed;
  const onnx::ModelProto before = SmallNetwork();
  for (const auto& tensor : before.graph().initializer()) {
    if (!at::equal(weights.at(tensor.name()), ReadTensor(tensor).value())) changed.insert(tensor.name());
  }
  EXPECT_EQ(changed, (std::set<std::string>{"w2", "b1", "b2"}));
}

// As PyTorch exports a new module: what is equal is one.
onnx::ModelProto NetworkThatSharesStatistics() {
  return ModelBuilder()
      .Input("x", {-1, 4})
      .Output("y", {-1, 3})
      .Weight("scale", at::ones({4}))
      .Weight("shift", at::zeros({4}))
      .Weight("w", at::eye(4).narrow(1, 0, 3).contiguous())
      .Node("Identity", {"scale"}, {"variance"})
      .Node("Identity", {"shift"}, {"mean"})
      .Node("BatchNormalization", {"x", "scale", "shift", "mean", "variance"}, {"n"})
      .Node("MatMul", {"n", "w"}, {"y"})
      .model();
}

TEST_F(TrainerTest, StatisticsThatAreSharedWithWeightsBecomeTheirOwn) {
  ASSERT_TRUE(SaveModel(NetworkThatSharesStatistics(), folder_ / "model.onnx"));
  TrainingJob job = Job();
  job.evaluation = {};  // Else the best is kept, which may be what it began with.
  job.epochs = 0;
  job.steps = 25;
  Notes notes;
  auto end = Run(job, notes);
  ASSERT_TRUE(end) << end.error().message;
  auto weights = Weights();
  EXPECT_FALSE(at::allclose(weights.at("scale"), at::ones({4})));
  EXPECT_TRUE(at::equal(weights.at("variance"), at::ones({4})));
  EXPECT_TRUE(at::equal(weights.at("mean"), at::zeros({4})));
  ForgetJob();
  job.update_batch_norm = true;
  end = Run(job, notes);
  ASSERT_TRUE(end) << end.error().message;
  weights = Weights();
  EXPECT_TRUE((weights.at("variance") < 0.5).all().item<bool>()) << "as the data has it, " << weights.at("variance");
  EXPECT_FALSE(at::allclose(weights.at("scale"), weights.at("variance"), 0.1, 0.1));
}

// softmax(x·w + b) over a batch normalisation whose statistics are handed on by Identity nodes, or not.
onnx::ModelProto NormalizedNetwork(bool handed) {
  ModelBuilder builder;
  builder.Input("x", {-1, 4})
      .Output("y", {-1, 3})
      .Weight("zeros", at::zeros({4}))
      .Weight("ones", at::ones({4}))
      .Weight("w", at::ones({4, 3}))
      .Weight("b", at::zeros({3}));
  if (handed) builder.Node("Identity", {"zeros"}, {"mean"}).Node("Identity", {"ones"}, {"variance"});
  return builder
      .Node("BatchNormalization", {"x", "ones", "zeros", handed ? "mean" : "zeros", handed ? "variance" : "ones"},
            {"n"})
      .Node("Gemm", {"n", "w", "b"}, {"s"})
      .Node("Softmax", {"s"}, {"y"})
      .With("axis", 1)
      .model();
}

TEST_F(TrainerTest, StatisticsBehindIdentityNodesAreUpdatedAndWritten) {
  ASSERT_TRUE(SaveModel(NormalizedNetwork(true), folder_ / "model.onnx"));
  TrainingJob job = Job();
  Notes notes;
  ASSERT_TRUE(Run(job, notes));
  EXPECT_TRUE(at::equal(Weights().at("mean"), at::zeros({4}))) << "they stay as they are";
  EXPECT_FALSE(at::equal(Weights().at("zeros"), at::zeros({4}))) << "a shift that is learnt";

  ForgetJob();
  job.update_batch_norm = true;
  Notes updated;
  const auto end = Run(job, updated);
  ASSERT_TRUE(end) << end.error().message;
  const auto weights = Weights();
  ASSERT_TRUE(weights.contains("mean"));
  EXPECT_GT(weights.at("mean")[2].item<double>(), 0.01) << "a third of the examples has a 1 there";
  // The file is a model again that can be trained.
  fs::copy_file(folder_ / "job" / "model.onnx", folder_ / "model.onnx", fs::copy_options::overwrite_existing);
  ForgetJob();
  Notes again;
  EXPECT_TRUE(Run(job, again));
}

TEST_F(TrainerTest, StatisticsThatAreWeightsAsWellCannotBeUpdated) {
  ASSERT_TRUE(SaveModel(NormalizedNetwork(false), folder_ / "model.onnx"));
  TrainingJob job = Job();
  job.update_batch_norm = true;
  Notes notes;
  const auto end = Run(job, notes);
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(end.error().message.find("/update_batch_norm: 'ones'"), std::string::npos) << end.error().message;
}

TEST_F(TrainerTest, MeasuresAModelWithoutTrainingIt) {
  Notes whole;
  ASSERT_TRUE(Run(Job(), whole));
  ForgetJob();
  Notes notes;
  const TrainerPaths paths{.model = folder_ / "model.onnx", .folder = folder_ / "job", .data_root = folder_};
  const auto trainer = Trainer::Prepare(Job(), paths, gate_, notes, clock_);
  ASSERT_TRUE(trainer) << trainer.error().message;
  ASSERT_TRUE((*trainer)->Measure());
  EXPECT_EQ((*trainer)->progress().baseline, whole.evaluations.front().accuracy);
  EXPECT_TRUE(notes.steps.empty());
  EXPECT_FALSE(fs::exists(Trainer::ResultFile(paths)));

  TrainingJob blind = Job();
  blind.evaluation = {};
  const auto unable = Trainer::Prepare(blind, paths, gate_, notes, clock_);
  ASSERT_TRUE(unable);
  EXPECT_FALSE((*unable)->Measure());
}

TEST_F(TrainerTest, AnInterruptedRunEndsAsIfNothingHadHappened) {
  Notes whole;
  ASSERT_TRUE(Run(Job(), whole));
  const auto expected = Weights();
  for (const std::int64_t step : {1, 8, 37, 79}) {
    ForgetJob();
    Notes first;
    first.interrupt_after = step;
    const auto stopped = Run(Job(), first);
    ASSERT_TRUE(stopped);
    ASSERT_EQ(*stopped, TrainingEnd::kInterrupted);
    Notes second;
    ASSERT_TRUE(Run(Job(), second));
    EXPECT_EQ(second.plan.first_step, step);
    for (const auto& [name, tensor] : Weights())
      EXPECT_TRUE(at::equal(tensor, expected.at(name))) << name << " " << step;
  }
}

TEST_F(TrainerTest, SmallBatchesThatAddUpAreOneLargeOne) {
  TrainingJob job = Job();
  job.optimizer = {.kind = OptimizerKind::kSgd, .learning_rate = 0.1};
  job.evaluation = {};
  job.epochs = 0;
  job.steps = 3;
  job.batch_size = 30;
  Notes notes;
  ASSERT_TRUE(Run(job, notes));
  const auto large = Weights();
  ForgetJob();
  job.batch_size = 10;
  job.accumulate = 3;
  ASSERT_TRUE(Run(job, notes));
  for (const auto& [name, tensor] : Weights()) EXPECT_TRUE(at::allclose(tensor, large.at(name), 1e-4, 1e-5)) << name;
}

TEST_F(TrainerTest, StopsWhenEvaluationsAreNoLongerBetter) {
  TrainingJob job = Job();
  job.epochs = 1000;
  job.evaluation.patience = 3;
  Notes notes;
  const auto end = Run(job, notes);
  ASSERT_TRUE(end);
  EXPECT_EQ(*end, TrainingEnd::kStoppedEarly);
  EXPECT_LT(notes.steps.size(), 8000U);
}

TEST_F(TrainerTest, ALossThatIsNoNumberEndsTheRunWithTheStepAndTheCause) {
  TrainingJob job = Job();
  job.optimizer = {.kind = OptimizerKind::kSgd, .learning_rate = 1e39};
  Notes notes;
  const auto end = Run(job, notes);
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(end.error().message.find("step"), std::string::npos) << end.error().message;
  EXPECT_NE(end.error().message.find("learning rate"), std::string::npos) << end.error().message;
}

TEST_F(TrainerTest, AsksTheGateForwardsAndBackwards) {
  TrainingJob job = Job();
  job.evaluation = {};
  job.epochs = 0;
  job.steps = 1;
  Notes notes;
  ASSERT_TRUE(Run(job, notes));
  // Three nodes forwards (the loss undoes the softmax); backwards there is more than one.
  EXPECT_GT(gate_.passed, 4);
}

TEST_F(TrainerTest, SaysWhatIsWrong) {
  const auto why = [&](const std::function<void(TrainingJob&)>& change) {
    TrainingJob job = Job();
    change(job);
    Notes notes;
    const auto end = Run(job, notes);
    return end ? "" : end.error().message;
  };
  EXPECT_NE(why([](auto& job) { job.trainable = {"nothing*"}; }).find("nothing*"), std::string::npos);
  EXPECT_NE(why([](auto& job) { job.output = "z"; }).find("'z'"), std::string::npos);
  EXPECT_NE(why([](auto& job) { job.data.path = "gone.csv"; }).find("gone.csv"), std::string::npos);
  EXPECT_NE(why([](auto& job) { job.data.target = "d"; }).find("d"), std::string::npos);
}

}  // namespace
}  // namespace tandem::training
