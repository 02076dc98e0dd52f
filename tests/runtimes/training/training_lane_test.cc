// Tensors of iterations in a lane. The heap and the lane are the whole process's, for good.

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtimes/training/graph/model_file.h"
#include "runtimes/training/trainer/trainer.h"
#include "runtimes/training/trainer/training_heap.h"
#include "tests/fakes/open_gate.h"
#include "tests/runtimes/training/model_builder.h"

namespace tandem::training {
namespace {

constexpr std::int64_t kLarge = 1 << 20;
constexpr std::uint64_t kLargeBytes = 4 * kLarge;

// A lane that grows as far as it may.
struct Lane final : LaneGrant {
  [[nodiscard]] std::uint64_t length() const override { return bytes; }
  [[nodiscard]] std::uint64_t Grow(std::uint64_t needed) override {
    ++asked;
    if (needed <= most) SetLength(needed);
    return bytes;
  }
  void SetLength(std::uint64_t to) {
    bytes = to;
    EXPECT_EQ(::ftruncate(fd, static_cast<off_t>(to)), 0);
  }
  [[nodiscard]] std::uint64_t held() const {
    struct stat status{};
    ::fstat(fd, &status);
    return static_cast<std::uint64_t>(status.st_blocks) * 512;
  }

  const int fd = ::memfd_create("lane", MFD_CLOEXEC);
  std::uint64_t bytes = 0;
  std::uint64_t most = 0;
  int asked = 0;
};

// The only one there is, once somebody has asked for it.
Lane& TheLane() {
  static Lane lane;
  static const Status given = [] {
    KeepFreedMemory();
    return GiveLane(lane.fd, lane);
  }();
#ifdef TANDEM_SANITIZED
  EXPECT_EQ(given.error().code, ErrorCode::kUnsupported);
#else
  EXPECT_TRUE(given) << given.error().message;
#endif
  return lane;
}

TEST(TrainingLane, HasWhatLivesWithinAnIterationAndNothingElse) {
  Lane& lane = TheLane();
#ifdef TANDEM_SANITIZED
  GTEST_SKIP() << "tensors have no memory of their own";
#endif
  {
    const IterationTensors iteration;
    EXPECT_FALSE(iteration.in_lane()) << "it has no length yet";
    EXPECT_EQ(at::ones({kLarge}).sum().item<double>(), kLarge);
  }
  EXPECT_EQ(lane.held(), 0U);

  lane.SetLength(4 * kLargeBytes);
  EXPECT_EQ(LeaveLane().value(), 0U);
  const at::Tensor before = at::full({kLarge}, 5.0F);
  EXPECT_EQ(lane.held(), 0U) << "it is not of an iteration";
  const std::uint64_t live = CountTensorBytes()->live;
  at::Tensor survivor;
  {
    const IterationTensors iteration;
    EXPECT_TRUE(iteration.in_lane());
    for (int i = 0; i < 10; ++i) {
      const at::Tensor one = at::full({kLarge}, 1.0F);
      const at::Tensor two = one + before;
      EXPECT_EQ(two.sum().item<double>(), 6 * kLarge);
    }
    EXPECT_GE(lane.held(), 2 * kLargeBytes);
    EXPECT_LE(lane.held(), 3 * kLargeBytes) << "the same memory each time";
    survivor = at::full({kLarge}, 3.0F);
  }
  EXPECT_EQ(LeaveLane().value(), kLargeBytes) << "it should not have stayed; it is kept all the same";
  // The turn of another job.
  void* const pages = ::mmap(nullptr, 4 * kLargeBytes, PROT_READ | PROT_WRITE, MAP_SHARED, lane.fd, 0);
  std::memset(pages, 0xff, 4 * kLargeBytes);
  EXPECT_EQ(survivor.sum().item<double>(), 3 * kLarge);
  survivor.reset();
  EXPECT_EQ(CountTensorBytes()->live, live) << "what is given back is not counted, wherever it was";

  {
    const IterationTensors iteration;
    lane.most = 5 * kLargeBytes;
    const at::Tensor five = at::ones({5 * kLarge});
    EXPECT_EQ(lane.asked, 1) << "a lane that can grow does";
    EXPECT_FALSE(iteration.outgrown());
    EXPECT_THROW((void)at::ones({kLarge}), std::exception) << "one that cannot does not";
    EXPECT_EQ(iteration.outgrown(), 6 * kLargeBytes);
    EXPECT_EQ(at::ones({100}).sum().item<double>(), 100) << "small ones never were in it";
  }
  EXPECT_EQ(at::ones({kLarge}).sum().item<double>(), kLarge) << "what is not of an iteration has its own";
  EXPECT_EQ(LeaveLane().value(), 0U);
  const IterationTensors next;
  EXPECT_FALSE(next.outgrown()) << "that was another one";
  EXPECT_EQ(at::ones({kLarge}).sum().item<double>(), kLarge);
  ::munmap(pages, 4 * kLargeBytes);
}

// Where a run is told of what it needs, and what becomes of it.
struct Notes final : TrainerListener {
  void OnPlan(const Plan& plan) override { first_step = plan.first_step; }
  void OnStep(const Step& step) override { steps = step.step; }
  void OnEvaluation(const Evaluation&) override {}
  void OnMemory(const MemoryUse& use) override { needs = use.ephemeral; }
  void OnCheckpoint(const SavedCheckpoint& saved) override { EXPECT_TRUE(saved.size) << saved.size.error().message; }
  void OnSkippedCheckpoint(const std::filesystem::path&, const Error& why) override { ADD_FAILURE() << why.message; }

  std::int64_t first_step = -1;
  std::int64_t steps = 0;
  std::uint64_t needs = 0;
  std::atomic<bool> interrupt = false;
};

class OutgrownLane : public testing::Test {
 protected:
  OutgrownLane() : folder_(std::filesystem::temp_directory_path() / ("tandem-lane-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
    const at::Generator random = at::detail::createCPUGenerator(1);
    const onnx::ModelProto model = ModelBuilder()
                                       .Input("x", {-1, 4})
                                       .Output("y", {-1, 3})
                                       .Weight("w1", at::randn({4, 8}, random))
                                       .Weight("w2", at::randn({8, 3}, random))
                                       .Node("MatMul", {"x", "w1"}, {"h"})
                                       .Node("Relu", {"h"}, {"r"})
                                       .Node("Dropout", {"r"}, {"d"})
                                       .Node("MatMul", {"d", "w2"}, {"s"})
                                       .Node("Softmax", {"s"}, {"y"})
                                       .model();
    EXPECT_TRUE(SaveModel(model, folder_ / "model.onnx"));
  }
  ~OutgrownLane() override { std::filesystem::remove_all(folder_); }

  Result<TrainingEnd> Run(const std::string& name, Notes& notes) {
    TrainingJob job;
    job.model = "small";
    job.data = {.kind = DataKind::kSynthetic, .samples = 80'000, .classes = 3};
    job.batch_size = 40'000;  // A few MB for each layer.
    job.steps = 6;
    job.deterministic = true;
    std::filesystem::create_directories(folder_ / name);
    const TrainerPaths paths{.model = folder_ / "model.onnx", .folder = folder_ / name, .data_root = folder_};
    TANDEM_ASSIGN(const auto trainer, Trainer::Prepare(job, paths, gate_, notes, clock_));
    return trainer->Run(notes.interrupt);
  }
  std::string ResultOf(const std::string& name) {
    std::ifstream in(folder_ / name / "model.onnx", std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  const std::filesystem::path folder_;
  OpenGate gate_;
  FakeClock clock_;
};

TEST_F(OutgrownLane, DropsTheIterationAndEndsAsIfNothingHadHappened) {
  Lane& lane = TheLane();
#ifdef TANDEM_SANITIZED
  GTEST_SKIP() << "tensors have no memory of their own";
#endif
  lane.most = 0;
  lane.SetLength(0);
  Notes alone;
  ASSERT_EQ(Run("alone", alone).value(), TrainingEnd::kFinished);
  lane.SetLength(64 * kLargeBytes);
  Notes roomy;
  ASSERT_EQ(Run("roomy", roomy).value(), TrainingEnd::kFinished);
  EXPECT_GT(lane.held(), 0U);
  ASSERT_FALSE(ResultOf("alone").empty());
  EXPECT_EQ(ResultOf("roomy"), ResultOf("alone")) << "where tensors lie changes no bit";

  // Each try gets as much as the one before has found to need, as the server would give it.
  std::uint64_t length = 512 << 10;
  int tries = 0;
  for (TrainingEnd end = TrainingEnd::kInterrupted; end != TrainingEnd::kFinished; ++tries) {
    ASSERT_LT(tries, 30);
    lane.SetLength(length);
    Notes notes;
    const auto run = Run("narrow", notes);
    ASSERT_TRUE(run) << run.error().message;
    end = *run;
    if (end == TrainingEnd::kFinished) break;
    EXPECT_GT(notes.needs, length);
    length = notes.needs;
  }
  EXPECT_GT(tries, 1);
  EXPECT_EQ(ResultOf("narrow"), ResultOf("alone")) << "nor does an iteration that was dropped";
}

}  // namespace
}  // namespace tandem::training
