// Jobs that are to fit: what they take, and what comes of them.

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "runtimes/training/estimate/memory_estimator.h"
#include "runtimes/training/graph/model_file.h"
#include "runtimes/training/trainer/trainer.h"
#include "runtimes/training/trainer/training_heap.h"
#include "tests/fakes/open_gate.h"
#include "tests/runtimes/training/model_builder.h"

namespace tandem::training {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// Interrupts the run after so many steps.
struct Listener final : TrainerListener {
  void OnPlan(const Plan&) override {}
  void OnStep(const Step& step) override { interrupt.store(step.step == interrupt_after); }
  void OnEvaluation(const Evaluation&) override {}
  void OnCheckpoint(const SavedCheckpoint&) override {}
  void OnSkippedCheckpoint(const fs::path&, const Error& why) override { ADD_FAILURE() << why.message; }
  void OnMemory(const MemoryUse& one) override { use = one; }

  std::int64_t interrupt_after = -1;
  std::atomic<bool> interrupt{false};
  std::optional<MemoryUse> use;
};

std::string Contents(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class FitMemoryTest : public testing::Test {
 protected:
  FitMemoryTest() : folder_(fs::temp_directory_path() / ("tandem-fit-" + std::to_string(::getpid()))) {
    static const bool counted = [] {
      KeepFreedMemory();
      return true;
    }();
    static_cast<void>(counted);
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    EXPECT_TRUE(SaveModel(ResidualNetwork(8), model()));
    job_.name = "test";
    job_.model = "test";
    job_.data = {.kind = DataKind::kSynthetic, .samples = 256, .classes = 10};
    job_.optimizer = {.kind = OptimizerKind::kAdam};
    job_.batch_size = 64;
    job_.steps = 4;
    job_.update_batch_norm = true;
    job_.deterministic = true;
  }
  ~FitMemoryTest() override { fs::remove_all(folder_); }

  [[nodiscard]] fs::path model() const { return folder_ / "model.onnx"; }
  // The job, held to that share of what a step takes beside what is there in any case; nullopt: to nothing.
  [[nodiscard]] TrainingJob JobOf(std::optional<double> share) const {
    TrainingJob job = job_;
    job.fit = true;
    if (!share) return job;
    const auto all = EstimateMemory(job_, model(), {});
    EXPECT_TRUE(all) << all.error().message;
    // What libraries take differs a little from one time to the next.
    const PersistentBytes& parts = all->persistent;
    job.memory = parts.total() + parts.weights + parts.optimizer +
                 static_cast<std::uint64_t>(*share * static_cast<double>(all->ephemeral));
    return job;
  }
  // Trains in that folder, by the plan.
  TrainingEnd Train(const TrainingJob& job, const std::string& name, const FitPlan& plan, Listener& listener) {
    fs::create_directories(folder_ / name);
    OpenGate gate;
    auto trainer = Trainer::Prepare(job, {.model = model(), .folder = folder_ / name, .data_root = {}}, gate, listener,
                                    RealClock::Instance(), plan);
    EXPECT_TRUE(trainer) << trainer.error().message;
    const auto end = (*trainer)->Run(listener.interrupt);
    EXPECT_TRUE(end) << end.error().message;
    return *end;
  }
  std::string Trained(const std::string& name) const { return Contents(folder_ / name / "model.onnx"); }

  const fs::path folder_;
  TrainingJob job_;
};

TEST_F(FitMemoryTest, WithoutABoundAllIsHeldAndTheLeastIsTold) {
  const auto fitted = FitMemory(JobOf({}), model(), {});
  ASSERT_TRUE(fitted) << fitted.error().message;
  EXPECT_TRUE(fitted->plan.segments.empty());
  ASSERT_TRUE(fitted->memory.fit);
  EXPECT_EQ(fitted->memory.fit->slowdown, 0);
  EXPECT_EQ(fitted->memory.fit->kept, fitted->memory.ephemeral);
  EXPECT_LT(fitted->memory.fit->least, fitted->memory.ephemeral / 2);
}

TEST_F(FitMemoryTest, TheTighterTheBoundTheMoreIsComputedAgain) {
  double slowdown = 0;
  std::uint64_t ephemeral = ~std::uint64_t{0};
  for (const double share : {0.9, 0.7, 0.5}) {
    const TrainingJob job = JobOf(share);
    const auto fitted = FitMemory(job, model(), {});
    ASSERT_TRUE(fitted) << fitted.error().message;
    EXPECT_FALSE(fitted->plan.segments.empty());
    EXPECT_LE(fitted->memory.persistent.total() + fitted->memory.ephemeral, *job.memory);
    EXPECT_LT(fitted->memory.ephemeral, ephemeral);
    EXPECT_GE(fitted->memory.fit->slowdown, slowdown);
    EXPECT_GT(fitted->memory.fit->slowdown, 0);
    slowdown = fitted->memory.fit->slowdown;
    ephemeral = fitted->memory.ephemeral;
  }
}

TEST_F(FitMemoryTest, ABoundThatNoPlanKeepsIsRefusedWithTheLeast) {
  const auto fitted = FitMemory(JobOf(0.02), model(), {});
  ASSERT_FALSE(fitted);
  EXPECT_EQ(fitted.error().code, ErrorCode::kTooLarge);
  EXPECT_NE(fitted.error().message.find("with memory: fit it takes"), std::string::npos) << fitted.error().message;

  TrainingJob tiny = JobOf({});
  tiny.memory = 2 * kMiB;
  const auto none = FitMemory(tiny, model(), {});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kTooLarge);
  EXPECT_NE(none.error().message.find("/memory is 2097152 bytes"), std::string::npos) << none.error().message;
}

TEST_F(FitMemoryTest, WhatIsTrainedIsTheSameBitForBitThroughAnInterruptionToo) {
  Listener plain;
  EXPECT_EQ(Train(job_, "plain", {}, plain), TrainingEnd::kFinished);

  const TrainingJob half = JobOf(0.5);
  const auto fitted = FitMemory(half, model(), {});
  ASSERT_TRUE(fitted) << fitted.error().message;
  ASSERT_FALSE(fitted->plan.segments.empty());
  Listener listener;
  EXPECT_EQ(Train(half, "fitted", fitted->plan, listener), TrainingEnd::kFinished);
  EXPECT_FALSE(Trained("plain").empty());
  EXPECT_EQ(Trained("fitted"), Trained("plain"));

  Listener first;
  first.interrupt_after = 2;
  EXPECT_EQ(Train(half, "interrupted", fitted->plan, first), TrainingEnd::kInterrupted);
  const auto tighter = FitMemory(JobOf(0.4), model(), {});
  ASSERT_TRUE(tighter) << tighter.error().message;
  EXPECT_NE(tighter->plan, fitted->plan);
  Listener second;
  EXPECT_EQ(Train(half, "interrupted", tighter->plan, second), TrainingEnd::kFinished);
  EXPECT_EQ(Trained("interrupted"), Trained("plain"));
}

#ifndef TANDEM_SANITIZED  // Whose memory is not counted.
TEST_F(FitMemoryTest, AStepTakesWhatIsTold) {
  for (const double share : {0.7, 0.4}) {
    const TrainingJob job = JobOf(share);
    const auto fitted = FitMemory(job, model(), {});
    ASSERT_TRUE(fitted) << fitted.error().message;
    Listener listener;
    Train(job, "job" + std::to_string(share), fitted->plan, listener);
    ASSERT_TRUE(listener.use);
    const double error = EstimateError(fitted->memory.ephemeral, listener.use->ephemeral);
    EXPECT_LT(std::abs(error), 0.1) << fitted->memory.ephemeral << " for " << listener.use->ephemeral;
  }
}
#endif

}  // namespace
}  // namespace tandem::training
