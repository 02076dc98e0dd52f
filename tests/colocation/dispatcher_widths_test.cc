// Runs on one thread and on all of them: the dispatcher with its threads, on a clock of the test's.

#include <algorithm>
#include <atomic>
#include <future>
#include <latch>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "colocation/dispatcher.h"
#include "tests/fakes/eventually.h"
#include "tests/fakes/fake_session.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using testing::FakeSession;
using testing::MakeServable;
using testing::MakeTensor;
using testing::PairSignature;

// A run that waits to be let go.
struct Run {
  std::string model;
  RunWidth width;
  nanoseconds expected;
  MonotonicTime began;
  bool go = false;
};

// Sessions whose runs wait until the test lets them go; knows which are under way.
class Stage {
 public:
  // With both sessions, whose runs are expected to take so long.
  std::shared_ptr<Servable> Model(const std::string& name, const Clock& clock, nanoseconds wide, nanoseconds narrow) {
    auto servable = WideOnly(name, clock, wide);
    servable->AddNarrow(std::make_unique<FakeSession>(PairSignature(), Function(name, RunWidth::kOne, narrow, clock)),
                        2);
    servable->latency(RunWidth::kOne).Observe(1, narrow, clock.Now());
    return servable;
  }
  std::shared_ptr<Servable> WideOnly(const std::string& name, const Clock& clock, nanoseconds wide) {
    auto servable = MakeServable(name, {.max_batch_size = 1}, Function(name, RunWidth::kAll, wide, clock));
    servable->latency().Observe(1, wide, clock.Now());
    return servable;
  }

  // Until so many runs are under way: their models and widths, in the order in which they began.
  std::vector<std::pair<std::string, RunWidth>> Under(std::size_t count) {
    const MutexLock lock(mu_);
    while (runs_.size() < count) changed_.Wait(mu_);
    std::vector<std::pair<std::string, RunWidth>> under;
    for (const auto& run : runs_) under.emplace_back(run->model, run->width);
    return under;
  }
  // Ends the one that began first, after it has taken what was expected of it.
  void End(FakeClock& clock) {
    {
      const MutexLock lock(mu_);
      clock.Advance(runs_.front()->expected - (clock.Now() - runs_.front()->began));
    }
    EndNow();
  }
  void EndNow() {
    const MutexLock lock(mu_);
    const std::shared_ptr<Run> first = runs_.front();
    first->go = true;
    changed_.NotifyAll();
    while (std::ranges::contains(runs_, first)) changed_.Wait(mu_);
  }
  void Open() {
    const MutexLock lock(mu_);
    open_ = true;
    changed_.NotifyAll();
  }

 private:
  FakeSession::RunFunction Function(const std::string& name, RunWidth width, nanoseconds expected, const Clock& clock) {
    return [this, name, width, expected, &clock](std::span<const Tensor> inputs, std::span<const std::string> outputs,
                                                 CancelToken&) {
      const MutexLock lock(mu_);
      const auto run = std::make_shared<Run>(name, width, expected, clock.Now());
      runs_.push_back(run);
      changed_.NotifyAll();
      while (!run->go && !open_) changed_.Wait(mu_);
      std::erase(runs_, run);
      changed_.NotifyAll();
      Tensor output = inputs[0];
      output.name = outputs[0];
      return Result<std::vector<Tensor>>(std::vector<Tensor>{output});
    };
  }

  Mutex mu_;
  CondVar changed_;
  std::vector<std::shared_ptr<Run>> runs_ GUARDED_BY(mu_);
  bool open_ GUARDED_BY(mu_) = false;
};

WorkItem Ask(const std::shared_ptr<Servable>& servable) {
  WorkItem item;
  item.servable = servable;
  item.inputs = {MakeTensor("x", DataType::kFp32, {1, 2}, std::vector<float>(2, 1))};
  item.outputs = {"y"};
  item.cancel = std::make_shared<CancelToken>();
  return item;
}

class DispatcherWidthsTest : public ::testing::Test {
 protected:
  ~DispatcherWidthsTest() override { stage_.Open(); }

  std::future<bool> Send(const std::shared_ptr<Servable>& servable, std::optional<nanoseconds> deadline_in = {},
                         std::uint64_t level = WorkItem().priority) {
    auto answered = std::make_shared<std::promise<bool>>();
    WorkItem item = Ask(servable);
    item.priority = level;
    if (deadline_in) item.deadline = clock_.Now() + *deadline_in;
    item.done = [answered](const Result<WorkResult>& result) { answered->set_value(result.has_value()); };
    auto future = answered->get_future();
    dispatcher_.Submit(std::move(item));
    return future;
  }

  // A run on all threads, and two requests that wait for it.
  std::vector<std::future<bool>> OneRunsAndTwoWait() {
    std::vector<std::future<bool>> answers;
    answers.push_back(Send(model_));
    stage_.Under(1);
    for (int i = 0; i < 2; ++i) answers.push_back(Send(model_, 1s));
    return answers;
  }

  using Runs = std::vector<std::pair<std::string, RunWidth>>;

  FakeClock clock_;
  const DeadlineAdmission admission_;
  Stage stage_;
  const std::shared_ptr<Servable> model_ = stage_.Model("m", clock_, 4ms, 7ms);
  const std::unique_ptr<ServingSign> sign_ = ServingSign::Create().value();
  Dispatcher dispatcher_{clock_, admission_, {.workers = 2, .widths = true, .sign = sign_.get()}};
};

TEST_F(DispatcherWidthsTest, OneRequestHasAllThreadsAndThoseThatWaitedHaveOneEach) {
  std::vector<std::future<bool>> answers;
  answers.push_back(Send(model_));
  EXPECT_EQ(stage_.Under(1), (Runs{{"m", RunWidth::kAll}}));
  for (int i = 0; i < 2; ++i) answers.push_back(Send(model_));
  stage_.End(clock_);
  EXPECT_EQ(stage_.Under(2), (Runs{{"m", RunWidth::kOne}, {"m", RunWidth::kOne}}));
  stage_.Open();
  for (auto& answer : answers) EXPECT_TRUE(answer.get());
  EXPECT_EQ(model_->runs(RunWidth::kAll), 1U);
  EXPECT_EQ(model_->runs(RunWidth::kOne), 2U);
}

TEST_F(DispatcherWidthsTest, TrainersAreShownHowManyThreadsRunsHave) {
  std::vector<std::future<bool>> answers = OneRunsAndTwoWait();
  EXPECT_EQ(sign_->shown(), DeviceSlots::kAllThreads);
  stage_.End(clock_);
  stage_.Under(2);
  EXPECT_EQ(sign_->shown(), 2);
  stage_.Open();
  for (auto& answer : answers) EXPECT_TRUE(answer.get());
  EXPECT_TRUE(Eventually([&] { return sign_->shown() == 0; }));
}

TEST_F(DispatcherWidthsTest, EachWidthTeachesItsOwnTimes) {
  auto first = Send(model_);
  stage_.Under(1);
  auto second = Send(model_);
  auto third = Send(model_);
  stage_.End(clock_);
  ASSERT_TRUE(first.get());
  stage_.Under(2);
  clock_.Advance(21ms);
  stage_.Open();
  ASSERT_TRUE(second.get() && third.get());
  EXPECT_GT(model_->latency(RunWidth::kOne).Predict(1)->typical, 7ms);
  EXPECT_EQ(model_->latency(RunWidth::kAll).Predict(1)->typical, 4ms);
}

TEST_F(DispatcherWidthsTest, AModelThatNeedsAllThreadsIsNotOvertaken) {
  const auto wide = stage_.WideOnly("w", clock_, 4ms);
  std::vector<std::future<bool>> answers = OneRunsAndTwoWait();
  stage_.End(clock_);
  EXPECT_EQ(stage_.Under(2), (Runs{{"m", RunWidth::kOne}, {"m", RunWidth::kOne}}));
  answers.push_back(Send(wide, 2s));
  answers.push_back(Send(model_, 3s));
  stage_.End(clock_);
  stage_.End(clock_);
  EXPECT_EQ(stage_.Under(1), (Runs{{"w", RunWidth::kAll}}));
  stage_.Open();
  for (auto& answer : answers) EXPECT_TRUE(answer.get());
}

TEST_F(DispatcherWidthsTest, WhatWaitedBehindOneThatNeedsAllThreadsGoesOnWhenThatIsGone) {
  const auto wide = stage_.WideOnly("w", clock_, 4ms);
  std::vector<std::future<bool>> answers = OneRunsAndTwoWait();
  stage_.End(clock_);
  stage_.Under(2);
  WorkItem gone = Ask(wide);
  gone.deadline = clock_.Now() + 2s;
  gone.done = [](const Result<WorkResult>&) {};
  const auto cancel = gone.cancel;
  dispatcher_.Submit(std::move(gone));
  answers.push_back(Send(model_, 3s));
  stage_.EndNow();
  cancel->Cancel();
  EXPECT_EQ(stage_.Under(2), (Runs{{"m", RunWidth::kOne}, {"m", RunWidth::kOne}}));
  stage_.Open();
  for (auto& answer : answers) EXPECT_TRUE(answer.get());
}

// Beside a run that goes on for long there is one thread, on which it takes too long; and all of them are free too
// late.
TEST_F(DispatcherWidthsTest, WhatIsLateOnOneThreadAndOnAllIsNotComputed) {
  const auto lengthy = stage_.Model("l", clock_, 40ms, 40ms);
  const auto urgent = stage_.Model("u", clock_, 4ms, 15ms);
  std::vector<std::future<bool>> answers;
  answers.push_back(Send(model_));
  stage_.Under(1);
  for (int i = 0; i < 2; ++i) answers.push_back(Send(lengthy));
  stage_.End(clock_);
  EXPECT_EQ(stage_.Under(2), (Runs{{"l", RunWidth::kOne}, {"l", RunWidth::kOne}}));
  auto late = Send(urgent, 50ms, 2);
  answers.push_back(Send(lengthy, {}, 1));
  clock_.Advance(39ms);
  stage_.EndNow();
  EXPECT_EQ(stage_.Under(2), (Runs{{"l", RunWidth::kOne}, {"l", RunWidth::kOne}}));
  stage_.End(clock_);
  EXPECT_FALSE(late.get()) << "10 ms are left; 15 on one thread, and all are free in 39";
  EXPECT_EQ(urgent->runs(RunWidth::kAll) + urgent->runs(RunWidth::kOne), 0U);
  stage_.Open();
  for (auto& answer : answers) EXPECT_TRUE(answer.get());
}

TEST_F(DispatcherWidthsTest, AdmissionCountsOnSeveralThreadsBesideEachOther) {
  const auto serial = stage_.Model("s", clock_, 4ms, 4ms);
  const auto wide = stage_.WideOnly("w", clock_, 4ms);
  std::vector<std::future<bool>> answers;
  answers.push_back(Send(serial));
  stage_.Under(1);
  for (int i = 0; i < 8; ++i) answers.push_back(Send(serial, 40ms));
  std::optional<Shortfall> shortfall;
  const auto foresee = [&](const Servable& model, nanoseconds left) {
    return dispatcher_.Foresee(model, 0, clock_.Now() + left, shortfall).has_value();
  };
  // Ten runs one after the other are 40 ms; with two threads beside each other the last one ends after 24.
  EXPECT_TRUE(foresee(*serial, 40500us));
  EXPECT_TRUE(foresee(*serial, 60ms));
  EXPECT_FALSE(foresee(*wide, 40500us));
  EXPECT_TRUE(foresee(*wide, 60ms));
  stage_.Open();
  for (auto& answer : answers) EXPECT_TRUE(answer.get());
}

// Checks in every run what may be beside it.
class Watched {
 public:
  Watched(int threads, FakeClock& clock) : threads_(threads), clock_(clock) {}

  FakeSession::RunFunction Function(RunWidth width) {
    return [this, width](std::span<const Tensor> inputs, std::span<const std::string> outputs, CancelToken&) {
      const int weight = width == RunWidth::kAll ? threads_ : 1;
      const int before = used_.fetch_add(weight);
      if (before + weight > threads_) crowded_ = true;
      clock_.Advance(100us);
      used_.fetch_sub(weight);
      Tensor output = inputs[0];
      output.name = outputs[0];
      return Result<std::vector<Tensor>>(std::vector<Tensor>{output});
    };
  }
  [[nodiscard]] bool crowded() const { return crowded_; }

 private:
  const int threads_;
  FakeClock& clock_;
  std::atomic<int> used_{0};
  std::atomic<bool> crowded_{false};
};

TEST(DispatcherWidths, ThreadsAreNeverUsedTwiceAndEveryRequestIsAnsweredOnce) {
  ASSERT_TRUE(rc::check([] {
    FakeClock clock;
    const int threads = *rc::gen::inRange(2, 6);
    Watched watched(threads, clock);
    std::vector<std::shared_ptr<Servable>> models;
    for (int i = 0; i < 3; ++i) {
      const nanoseconds wide = std::chrono::microseconds(*rc::gen::inRange(10, 10'000));
      models.push_back(
          MakeServable("m", {.max_batch_size = i == 1 ? 4 : 1, .dynamic = i == 1}, watched.Function(RunWidth::kAll)));
      models.back()->latency().Observe(1, wide, clock.Now());
      if (i == 2) continue;
      models.back()->AddNarrow(std::make_unique<FakeSession>(PairSignature(), watched.Function(RunWidth::kOne)),
                               threads);
      models.back()->latency(RunWidth::kOne).Observe(1, wide * *rc::gen::inRange(1, 6), clock.Now());
    }
    const auto asks = *rc::gen::resize(
        60, rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, models.size())));
    std::vector<std::atomic<int>> answers(asks.size());
    std::latch all(static_cast<std::ptrdiff_t>(asks.size()));
    {
      const BoundedQueueAdmission admission;
      Dispatcher dispatcher(clock, admission, {.workers = threads, .widths = true});
      for (std::size_t i = 0; i < asks.size(); ++i) {
        WorkItem item = Ask(models[asks[i]]);
        item.done = [&answers, &all, i](const Result<WorkResult>&) {
          ++answers[i];
          all.count_down();
        };
        dispatcher.Submit(std::move(item));
      }
      all.wait();
    }
    RC_ASSERT(!watched.crowded());
    RC_ASSERT(std::ranges::all_of(answers, [](const auto& count) { return count == 1; }));
  }));
}

}  // namespace
}  // namespace tandem
