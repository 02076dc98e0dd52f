#include "colocation/batch_runner.h"

#include <utility>

#include <gtest/gtest.h>

#include "tests/fakes/fake_session.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;

// Runs of one element that take, and end, as the test says.
class BatchRunnerTest : public ::testing::Test {
 protected:
  void Run(std::chrono::nanoseconds took, std::optional<ErrorCode> error = {}) {
    took_ = took;
    error_ = error;
    WorkItem item;
    item.servable = servable_;
    item.inputs = {testing::MakeTensor("x", DataType::kFp32, {1, 2}, std::vector<float>{1, 2})};
    item.outputs = {"y"};
    item.cancel = std::make_shared<CancelToken>();
    item.done = [](const Result<WorkResult>&) {};
    const MonotonicTime queued = clock_.Now();
    runner_.RunAndAnswer({&item, 1}, {&queued, 1}, {});
  }
  // How many kept within their bound, and how many did not.
  std::pair<std::uint64_t, std::uint64_t> Bounds() const {
    return {servable_->run_bounds().within(), servable_->run_bounds().exceeded()};
  }
  using Counts = std::pair<std::uint64_t, std::uint64_t>;

  FakeClock clock_;
  std::chrono::nanoseconds took_{0};
  std::optional<ErrorCode> error_;
  const std::shared_ptr<Servable> servable_ =
      testing::MakeServable("m", {.max_batch_size = 8},
                            [this](std::span<const Tensor> inputs, std::span<const std::string> outputs,
                                   CancelToken&) -> Result<std::vector<Tensor>> {
                              clock_.Advance(took_);
                              if (error_) return Fail(*error_, "as the test says");
                              Tensor output = inputs[0];
                              output.name = outputs[0];
                              return std::vector<Tensor>{output};
                            });
  const BatchRunner runner_{clock_, {}, nullptr, nullptr};
};

TEST_F(BatchRunnerTest, CountsWhetherARunKeptWithinItsBoundBeforeItIsLearnt) {
  Run(10ms);
  EXPECT_EQ(Bounds(), (Counts{0, 0})) << "nothing was known of it";
  Run(12ms);
  EXPECT_EQ(Bounds(), (Counts{1, 0})) << "a quarter more than the first is within";
  Run(100ms);
  EXPECT_EQ(Bounds(), (Counts{1, 1})) << "what it has taught itself does not excuse it";
}

TEST_F(BatchRunnerTest, ABoundThatAdmissionWouldNotRelyOnIsNotCounted) {
  Run(10ms);
  clock_.Advance(2s);
  Run(100ms);
  EXPECT_EQ(Bounds(), (Counts{0, 0})) << "it was old";
  servable_->latency().Recall({.elements = 1, .typical = 10ms, .spread = 1.5});
  clock_.Advance(2s);
  Run(11ms);
  EXPECT_EQ(Bounds(), (Counts{1, 0})) << "what is known from beforehand is not old";
}

TEST_F(BatchRunnerTest, ARunThatWasStoppedCountsOnceItHadTakenTooLong) {
  Run(10ms);
  Run(1ms, ErrorCode::kCancelled);
  Run(11ms, ErrorCode::kCancelled);
  EXPECT_EQ(Bounds(), (Counts{0, 0})) << "how long it would have taken is not known";
  Run(50ms, ErrorCode::kCancelled);
  EXPECT_EQ(Bounds(), (Counts{0, 1}));
  Run(50ms, ErrorCode::kInternal);
  EXPECT_EQ(Bounds(), (Counts{0, 1})) << "a failure says nothing of time";
}

}  // namespace
}  // namespace tandem
