#include "colocation/dispatcher.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <latch>
#include <new>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "tests/fakes/fake_session.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;
using testing::MakeServable;
using testing::MakeTensor;
using testing::ValuesOf;

// Holds every run of a session until the test opens it, and remembers the batches in order.
class Gate {
 public:
  testing::FakeSession::RunFunction Function() {
    return [this](std::span<const Tensor> inputs, std::span<const std::string> outputs,
                  CancelToken& cancel) -> Result<std::vector<Tensor>> {
      MutexLock lock(mu_);
      runs_.push_back(ValuesOf<float>(inputs[0]));
      entered_.NotifyAll();
      while (!open_ && !cancel.cancelled()) changed_.WaitFor(mu_, 1ms);
      if (cancel.cancelled()) return Fail(ErrorCode::kCancelled, "cancelled");
      Tensor output = inputs[0];
      output.name = outputs[0];
      return std::vector<Tensor>{output};
    };
  }
  void WaitForRuns(std::size_t count) {
    MutexLock lock(mu_);
    while (runs_.size() < count) entered_.Wait(mu_);
  }
  void Open() {
    MutexLock lock(mu_);
    open_ = true;
    changed_.NotifyAll();
  }
  std::vector<std::vector<float>> runs() {
    MutexLock lock(mu_);
    return runs_;
  }

 private:
  Mutex mu_;
  CondVar entered_, changed_;
  bool open_ GUARDED_BY(mu_) = false;
  std::vector<std::vector<float>> runs_ GUARDED_BY(mu_);
};

struct Sent {
  std::future<Result<WorkResult>> answer;
  std::shared_ptr<CancelToken> cancel;
};

class DispatcherTest : public ::testing::Test {
 protected:
  Sent Send(Dispatcher& dispatcher, const std::shared_ptr<Servable>& servable, float value, std::uint64_t priority = 9,
            std::optional<std::chrono::nanoseconds> deadline_in = {}, std::vector<std::string> outputs = {"y"},
            const Shape& shape = {1, 2}) {
    auto promise = std::make_shared<std::promise<Result<WorkResult>>>();
    Sent sent{.answer = promise->get_future(), .cancel = std::make_shared<CancelToken>()};
    WorkItem item;
    item.servable = servable;
    item.inputs = {
        MakeTensor("x", DataType::kFp32, shape, std::vector<float>(static_cast<std::size_t>(shape[1]), value))};
    item.outputs = std::move(outputs);
    item.priority = priority;
    if (deadline_in) item.deadline = clock_.Now() + *deadline_in;
    item.cancel = sent.cancel;
    item.done = [promise](Result<WorkResult> result) { promise->set_value(std::move(result)); };
    dispatcher.Submit(std::move(item));
    return sent;
  }

  FakeClock clock_;
  BoundedQueueAdmission admission_;
  Gate gate_;
  const std::shared_ptr<Servable> single_ = MakeServable("single", {.max_batch_size = 1}, gate_.Function());
  const std::shared_ptr<Servable> batching_ =
      MakeServable("batching", {.max_batch_size = 8, .dynamic = true}, gate_.Function());
};

TEST_F(DispatcherTest, RunsByPriorityThenDeadlineThenArrival) {
  Dispatcher dispatcher(clock_, admission_, {});
  std::vector<Sent> sent;
  sent.push_back(Send(dispatcher, single_, 0));
  gate_.WaitForRuns(1);
  sent.push_back(Send(dispatcher, single_, 1, 9));
  sent.push_back(Send(dispatcher, single_, 2, 9));
  sent.push_back(Send(dispatcher, single_, 3, 9, 50ms));
  sent.push_back(Send(dispatcher, single_, 4, 9, 10ms));
  sent.push_back(Send(dispatcher, single_, 5, 1));
  gate_.Open();
  for (Sent& s : sent) ASSERT_TRUE(s.answer.get());
  std::vector<float> order;
  for (const auto& run : gate_.runs()) order.push_back(run[0]);
  EXPECT_EQ(order, (std::vector<float>{0, 5, 4, 3, 1, 2}));
}

TEST_F(DispatcherTest, JoinsWhatWaitedIntoOneRunAndAnswersEachItsOwn) {
  Dispatcher dispatcher(clock_, admission_, {});
  Sent first = Send(dispatcher, batching_, 0);
  gate_.WaitForRuns(1);
  std::vector<Sent> sent;
  for (int i = 1; i <= 3; ++i) sent.push_back(Send(dispatcher, batching_, static_cast<float>(i)));
  gate_.Open();
  for (int i = 1; i <= 3; ++i) {
    const auto answer = sent[static_cast<std::size_t>(i - 1)].answer.get();
    ASSERT_TRUE(answer);
    EXPECT_EQ(ValuesOf<float>(answer->outputs[0]), (std::vector<float>(2, static_cast<float>(i))));
  }
  EXPECT_EQ(gate_.runs().size(), 2u);
  ASSERT_TRUE(first.answer.get());
  EXPECT_EQ(batching_->statistics().Totals().execution_count, 2u);
}

TEST_F(DispatcherTest, NeverComputesARequestWhoseDeadlinePassedWhileItWaited) {
  Dispatcher dispatcher(clock_, admission_, {});
  Sent first = Send(dispatcher, single_, 0);
  gate_.WaitForRuns(1);
  Sent late = Send(dispatcher, single_, 1, 9, 10ms);
  clock_.Advance(11ms);
  gate_.Open();
  const auto answer = late.answer.get();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kDeadlineExceeded);
  ASSERT_TRUE(first.answer.get());
  EXPECT_EQ(gate_.runs().size(), 1u);
}

TEST_F(DispatcherTest, FreesTheSlotOfAClientThatHasGone) {
  Dispatcher dispatcher(clock_, admission_, {.max_queued = 1});
  Sent first = Send(dispatcher, single_, 0);
  gate_.WaitForRuns(1);
  Sent gone = Send(dispatcher, single_, 1);
  const auto full = Send(dispatcher, single_, 2).answer.get();
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, ErrorCode::kUnavailable);
  gone.cancel->Cancel();
  EXPECT_EQ(dispatcher.queued(), 0u);
  Sent next = Send(dispatcher, single_, 3);
  gate_.Open();
  EXPECT_TRUE(next.answer.get());
  EXPECT_EQ(gone.answer.get().error().code, ErrorCode::kCancelled);
  EXPECT_EQ(gate_.runs().size(), 2u);
}

TEST_F(DispatcherTest, StopsARunOnlyWhenAllItsMembersHaveGone) {
  Dispatcher dispatcher(clock_, admission_, {});
  Sent blocker = Send(dispatcher, single_, 0);
  gate_.WaitForRuns(1);
  Sent a = Send(dispatcher, batching_, 1);
  Sent b = Send(dispatcher, batching_, 2);
  blocker.cancel->Cancel();
  gate_.WaitForRuns(2);
  a.cancel->Cancel();
  EXPECT_EQ(b.answer.wait_for(20ms), std::future_status::timeout);
  b.cancel->Cancel();
  EXPECT_EQ(a.answer.get().error().code, ErrorCode::kCancelled);
  EXPECT_EQ(b.answer.get().error().code, ErrorCode::kCancelled);
}

TEST_F(DispatcherTest, FailsOnlyTheGuiltyRequestOfABatch) {
  std::latch start(1);
  const auto picky = MakeServable("picky", {.max_batch_size = 8, .dynamic = true},
                                  [&](std::span<const Tensor> inputs, std::span<const std::string> outputs,
                                      CancelToken&) -> Result<std::vector<Tensor>> {
                                    start.wait();
                                    for (const float v : ValuesOf<float>(inputs[0])) {
                                      if (v == 2) return Invalid("2 is not allowed");
                                    }
                                    Tensor output = inputs[0];
                                    output.name = outputs[0];
                                    return std::vector<Tensor>{output};
                                  });
  Dispatcher dispatcher(clock_, admission_, {});
  std::vector<Sent> sent;
  for (int i = 0; i < 4; ++i) sent.push_back(Send(dispatcher, picky, static_cast<float>(i)));
  start.count_down();
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(sent[static_cast<std::size_t>(i)].answer.get().has_value(), i != 2) << i;
  }
}

TEST_F(DispatcherTest, AnswersWhatStillWaitsWhenItStops) {
  Sent running;
  Sent waiting;
  {
    Dispatcher dispatcher(clock_, admission_, {});
    running = Send(dispatcher, single_, 0);
    gate_.WaitForRuns(1);
    waiting = Send(dispatcher, single_, 1);
    gate_.Open();
    // Whether the worker or the destructor gets to the second one first, it is answered.
  }
  EXPECT_TRUE(running.answer.get());
  const auto answer = waiting.answer.get();
  EXPECT_TRUE(answer || answer.error().code == ErrorCode::kUnavailable);
}

TEST_F(DispatcherTest, AWorkerThatLooksForWorkFindsItAndHearsTheStop) {
  gate_.Open();
  // The clock stands still, so once it looks it never sleeps.
  Dispatcher dispatcher(clock_, admission_, {.poll_window = 1h});
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Send(dispatcher, single_, 1).answer.get());
}

TEST_F(DispatcherTest, RefusesBeyondTheModelsOwnBound) {
  const auto bounded = MakeServable("bounded", {.max_batch_size = 1, .max_queue_size = 1}, gate_.Function());
  Dispatcher dispatcher(clock_, admission_, {});
  Sent running = Send(dispatcher, bounded, 0);
  gate_.WaitForRuns(1);
  Sent waiting = Send(dispatcher, bounded, 1);
  EXPECT_EQ(Send(dispatcher, bounded, 2).answer.get().error().code, ErrorCode::kUnavailable);
  Sent other = Send(dispatcher, single_, 3);
  gate_.Open();
  EXPECT_TRUE(running.answer.get() && waiting.answer.get() && other.answer.get());
}

TEST_F(DispatcherTest, AFullQueueTellsHowLongWhatWaitsTakes) {
  single_->latency().Observe(1, 400ms, clock_.Now());
  Dispatcher dispatcher(clock_, admission_, {.max_queued = 2});
  Sent running = Send(dispatcher, single_, 0);
  gate_.WaitForRuns(1);
  Sent first = Send(dispatcher, single_, 1);
  Sent second = Send(dispatcher, single_, 2);
  EXPECT_EQ(Send(dispatcher, single_, 3).answer.get().error().retry_after, 1200ms) << "what runs, and the two";
  EXPECT_EQ(Send(dispatcher, single_, 4, 9, 10s).answer.get().error().retry_after, 400ms) << "it would be the next";
  EXPECT_EQ(Send(dispatcher, batching_, 5, 1).answer.get().error().retry_after, 400ms) << "so would this one";
  const auto late = Send(dispatcher, single_, 6, 9, -1ms).answer.get();
  EXPECT_EQ(late.error().retry_after, 0ms) << "it was late already";
  gate_.Open();
  EXPECT_TRUE(running.answer.get() && first.answer.get() && second.answer.get());
}

TEST_F(DispatcherTest, ARunWithoutMemoryFailsAloneAndTheNextIsAnswered) {
  Dispatcher dispatcher(clock_, admission_, {});
  bool short_of_memory = true;
  const auto servable = MakeServable("large", {},
                                     [&](std::span<const Tensor> inputs, std::span<const std::string> outputs,
                                         CancelToken&) -> Result<std::vector<Tensor>> {
                                       if (std::exchange(short_of_memory, false)) throw std::bad_alloc();
                                       Tensor output = inputs[0];
                                       output.name = outputs[0];
                                       return std::vector<Tensor>{output};
                                     });
  const auto failed = Send(dispatcher, servable, 1).answer.get();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(Send(dispatcher, servable, 1).answer.get());
}

TEST_F(DispatcherTest, WhatHasNoDeadlineGetsItsShareBesideAFloodThatHas) {
  for (const auto& [weight, turn] : {std::pair(1.0, 10U), std::pair(3.0, 7U)}) {
    std::vector<char> order;
    std::latch full(1);
    const auto run = [&](char name) {
      return [&, name](std::span<const Tensor> inputs, std::span<const std::string> outputs,
                       CancelToken&) -> Result<std::vector<Tensor>> {
        full.wait();
        order.push_back(name);  // One worker.
        clock_.Advance(100ms);
        Tensor output = inputs[0];
        output.name = outputs[0];
        return std::vector<Tensor>{output};
      };
    };
    const auto urgent = MakeServable("urgent", {.max_batch_size = 1}, run('u'));
    const auto patient = MakeServable("patient", {.max_batch_size = 1, .weight = weight}, run('p'));
    Dispatcher dispatcher(clock_, admission_, {});
    std::vector<Sent> sent;
    sent.push_back(Send(dispatcher, urgent, 0, 9, 1h));
    while (dispatcher.queued() > 0) std::this_thread::yield();
    sent.push_back(Send(dispatcher, patient, 0, 9));
    for (int i = 0; i < 20; ++i) sent.push_back(Send(dispatcher, urgent, 0, 9, 1h));
    full.count_down();
    for (Sent& s : sent) ASSERT_TRUE(s.answer.get());
    EXPECT_EQ(std::ranges::find(order, 'p') - order.begin(), turn) << "with weight " << weight;
  }
}

TEST_F(DispatcherTest, ServesTheMostUrgentModelOnceTheDeadHaveGone) {
  const auto other = MakeServable("other", {.max_batch_size = 1}, gate_.Function());
  Dispatcher dispatcher(clock_, admission_, {});
  Sent blocker = Send(dispatcher, single_, 0);
  gate_.WaitForRuns(1);
  Sent dead = Send(dispatcher, single_, 1, 1, 10ms);
  Sent last = Send(dispatcher, single_, 2, 9);
  Sent urgent = Send(dispatcher, other, 3, 2);
  clock_.Advance(11ms);
  gate_.Open();
  ASSERT_TRUE(urgent.answer.get() && last.answer.get() && blocker.answer.get());
  EXPECT_EQ(dead.answer.get().error().code, ErrorCode::kDeadlineExceeded);
  std::vector<float> order;
  for (const auto& run : gate_.runs()) order.push_back(run[0]);
  EXPECT_EQ(order, (std::vector<float>{0, 3, 2}));
}

TEST_F(DispatcherTest, AnswersTheLateWhileTheDeviceIsBusyAlsoBehindSomebodyMoreUrgent) {
  Dispatcher dispatcher(clock_, admission_, {});
  Sent blocker = Send(dispatcher, single_, 0);
  gate_.WaitForRuns(1);
  Sent urgent = Send(dispatcher, single_, 1, 1);
  Sent late = Send(dispatcher, single_, 2, 9, 10ms);
  clock_.Advance(11ms);
  const auto answer = late.answer.get();  // The gate is still shut.
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(dispatcher.queued(), 1u);
  gate_.Open();
  EXPECT_TRUE(urgent.answer.get() && blocker.answer.get());
}

TEST_F(DispatcherTest, TheSlotOfALateRequestIsFree) {
  Dispatcher dispatcher(clock_, admission_, {.max_queued = 2});
  Sent blocker = Send(dispatcher, single_, 0);
  gate_.WaitForRuns(1);
  Sent urgent = Send(dispatcher, single_, 1, 1);
  Sent late = Send(dispatcher, single_, 2, 9, std::chrono::hours(1));
  clock_.Advance(std::chrono::hours(2));
  Sent next = Send(dispatcher, single_, 3);
  gate_.Open();
  EXPECT_TRUE(next.answer.get());
  EXPECT_FALSE(late.answer.get());
  EXPECT_TRUE(urgent.answer.get() && blocker.answer.get());
}

TEST_F(DispatcherTest, WhatIsCancelledAtItsDeadlineWasLate) {
  Dispatcher dispatcher(clock_, admission_, {});
  Sent blocker = Send(dispatcher, single_, 0);
  gate_.WaitForRuns(1);
  Sent late = Send(dispatcher, single_, 1, 9, std::chrono::hours(1));
  clock_.Advance(std::chrono::hours(1));
  late.cancel->Cancel();
  EXPECT_EQ(late.answer.get().error().code, ErrorCode::kDeadlineExceeded);
  gate_.Open();
  EXPECT_TRUE(blocker.answer.get());
}

// Two outputs: "y" keeps the batch, "sum" does not.
TEST_F(DispatcherTest, AnOutputThatCannotBeBatchedConcernsOnlyThoseWhoAskForIt) {
  std::atomic<int> runs = 0;
  const auto servable = MakeServable("sums", {.max_batch_size = 8, .dynamic = true},
                                     [&](std::span<const Tensor> inputs, std::span<const std::string> outputs,
                                         CancelToken&) -> Result<std::vector<Tensor>> {
                                       ++runs;
                                       std::vector<Tensor> results;
                                       for (const std::string& name : outputs) {
                                         Tensor output = inputs[0];
                                         if (name == "sum")
                                           output = MakeTensor("", DataType::kFp32, {1}, std::vector{1.0f});
                                         output.name = name;
                                         results.push_back(std::move(output));
                                       }
                                       return results;
                                     });
  Dispatcher dispatcher(clock_, admission_, {});
  Sent blocker = Send(dispatcher, single_, 0);
  gate_.WaitForRuns(1);
  Sent plain = Send(dispatcher, servable, 1);
  Sent sum = Send(dispatcher, servable, 2, 9, {}, {"sum"});
  Sent both = Send(dispatcher, servable, 3, 9, {}, {"y", "sum"});
  gate_.Open();
  const auto first = plain.answer.get();
  ASSERT_TRUE(first);
  EXPECT_EQ(ValuesOf<float>(first->outputs[0]), (std::vector<float>{1, 1}));
  ASSERT_TRUE(sum.answer.get());
  const auto third = both.answer.get();
  ASSERT_TRUE(third);
  EXPECT_EQ(ValuesOf<float>(third->outputs[0]), (std::vector<float>{3, 3}));
  EXPECT_EQ(runs, 3);  // Together, and the two that asked for the sum once more apart.
  ASSERT_TRUE(blocker.answer.get());
}

TEST_F(DispatcherTest, WhatIsLateOnceItsBatchHasFailedIsNotRunAgain) {
  std::atomic<int> runs = 0;
  const auto failing = MakeServable(
      "failing", {.max_batch_size = 8, .dynamic = true},
      [&](std::span<const Tensor>, std::span<const std::string>, CancelToken&) -> Result<std::vector<Tensor>> {
        ++runs;
        clock_.Advance(std::chrono::hours(1));
        return Fail(ErrorCode::kInternal, "no");
      });
  Dispatcher dispatcher(clock_, admission_, {});
  Sent blocker = Send(dispatcher, single_, 0);
  gate_.WaitForRuns(1);
  Sent patient = Send(dispatcher, failing, 1);
  Sent hurried = Send(dispatcher, failing, 2, 9, 1min);
  gate_.Open();
  EXPECT_EQ(hurried.answer.get().error().code, ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(patient.answer.get().error().code, ErrorCode::kInternal);
  EXPECT_EQ(runs, 2);
  ASSERT_TRUE(blocker.answer.get());
}

TEST_F(DispatcherTest, RefusesAtArrivalWhatWouldBeLateBehindWhatRunsAndWaits) {
  const DeadlineAdmission by_deadline;
  single_->latency().Observe(1, 10ms, clock_.Now());
  Dispatcher dispatcher(clock_, by_deadline, {});
  Sent running = Send(dispatcher, single_, 0);
  gate_.WaitForRuns(1);
  Sent waiting = Send(dispatcher, single_, 1, 9, 40ms);
  Sent urgent = Send(dispatcher, single_, 2, 9, 25ms);
  EXPECT_EQ(dispatcher.queued(), 2u) << "ahead of the urgent one there is only what runs";
  Sent later = Send(dispatcher, single_, 3, 9, 60ms);
  const auto late = Send(dispatcher, single_, 4, 9, 41ms).answer.get();
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(late.error().message.find("30.000 ms of work ahead"), std::string::npos) << late.error().message;
  EXPECT_EQ(late.error().retry_after, 2ms) << "30 ms, a run of up to 12.5 ms and the answer in 41 ms";
  Sent patient = Send(dispatcher, single_, 5);
  gate_.Open();
  for (Sent* sent : {&running, &urgent, &waiting, &later, &patient}) EXPECT_TRUE(sent->answer.get());
}

TEST_F(DispatcherTest, AWorkerThatIsFreeIsEnough) {
  const DeadlineAdmission by_deadline;
  const auto other = MakeServable("other", {.max_batch_size = 1}, gate_.Function());
  single_->latency().Observe(1, 10s, clock_.Now());
  other->latency().Observe(1, 10ms, clock_.Now());
  Dispatcher dispatcher(clock_, by_deadline, {.workers = 2});
  Sent running = Send(dispatcher, single_, 0);
  gate_.WaitForRuns(1);
  Sent urgent = Send(dispatcher, other, 1, 9, 100ms);
  gate_.WaitForRuns(2);
  EXPECT_FALSE(Send(dispatcher, other, 2, 9, 20ms).answer.get()) << "now both are busy";
  gate_.Open();
  EXPECT_TRUE(running.answer.get() && urgent.answer.get());
}

TEST_F(DispatcherTest, ARunThatWasGivenUpLateTeachesThatItIsSlow) {
  const auto known = MakeServable("known", {.max_batch_size = 1}, gate_.Function());
  known->latency().Observe(1, 10ms, clock_.Now());
  Dispatcher dispatcher(clock_, admission_, {});
  Sent early = Send(dispatcher, known, 0);
  gate_.WaitForRuns(1);
  early.cancel->Cancel();
  EXPECT_FALSE(early.answer.get());
  EXPECT_EQ(known->latency().Predict(1)->typical, 10ms);
  Sent late = Send(dispatcher, known, 1);
  gate_.WaitForRuns(2);
  clock_.Advance(100ms);
  late.cancel->Cancel();
  EXPECT_FALSE(late.answer.get());
  EXPECT_GT(known->latency().Predict(1)->typical, 20ms);
}

TEST_F(DispatcherTest, DoesNotComputeWhatIsNoLongerDoneInTime) {
  const DeadlineAdmission by_deadline;
  single_->latency().Observe(1, 10ms, clock_.Now());
  Dispatcher dispatcher(clock_, by_deadline, {});
  Sent running = Send(dispatcher, single_, 0);
  gate_.WaitForRuns(1);
  Sent hopeless = Send(dispatcher, single_, 1, 9, 40ms);
  Sent in_time = Send(dispatcher, single_, 2, 9, 80ms);
  clock_.Advance(31ms);
  gate_.Open();
  const auto answer = hopeless.answer.get();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kDeadlineExceeded);
  EXPECT_TRUE(running.answer.get() && in_time.answer.get());
  EXPECT_EQ(gate_.runs().size(), 2u);
}

TEST_F(DispatcherTest, DoesNotWaitForABatchPastADeadline) {
  const auto patient = MakeServable(
      "patient", {.max_batch_size = 8, .dynamic = true, .max_queue_delay = std::chrono::hours(1)}, gate_.Function());
  Dispatcher dispatcher(clock_, admission_, {});
  gate_.Open();
  EXPECT_TRUE(Send(dispatcher, patient, 1, 9, 1min).answer.get());
  // Where it is known what a run takes, there is time for company.
  const auto known = MakeServable(
      "known", {.max_batch_size = 8, .dynamic = true, .max_queue_delay = std::chrono::hours(1)}, gate_.Function());
  known->latency().Observe(1, 800ms, clock_.Now());
  Sent sent = Send(dispatcher, known, 2, 9, 2s + 50ms);
  EXPECT_EQ(sent.answer.wait_for(20ms), std::future_status::timeout);
  clock_.Advance(50ms);
  EXPECT_TRUE(sent.answer.get());
  EXPECT_EQ(gate_.runs().size(), 2u);
}

TEST_F(DispatcherTest, AFullBatchIsNotHeldUpByAnotherShapeThatWaits) {
  const auto patient = MakeServable(
      "patient", {.max_batch_size = 2, .dynamic = true, .max_queue_delay = std::chrono::hours(1)}, gate_.Function());
  Dispatcher dispatcher(clock_, admission_, {});
  gate_.Open();
  Sent waiting = Send(dispatcher, patient, 1);
  std::vector<Sent> wide;
  for (int i = 0; i < 2; ++i) wide.push_back(Send(dispatcher, patient, 2, 9, {}, {"y"}, {1, 3}));
  for (Sent& s : wide) EXPECT_TRUE(s.answer.get());
  EXPECT_EQ(dispatcher.queued(), 1u);
  waiting.cancel->Cancel();
}

TEST_F(DispatcherTest, AnAnswerThatFindsNoMemoryDoesNotEndTheWorker) {
  Dispatcher dispatcher(clock_, admission_, {});
  gate_.Open();
  WorkItem item;
  item.servable = single_;
  item.inputs = {MakeTensor("x", DataType::kFp32, {1, 2}, std::vector<float>{1, 1})};
  item.outputs = {"y"};
  item.cancel = std::make_shared<CancelToken>();
  item.done = [](const Result<WorkResult>&) { throw std::bad_alloc(); };
  dispatcher.Submit(std::move(item));
  EXPECT_TRUE(Send(dispatcher, single_, 2).answer.get());
}

// A model whose runs tell on which thread they were made.
class RunsHereTest : public DispatcherTest {
 protected:
  std::shared_ptr<Servable> Short(const BatchSettings& batching = {.max_batch_size = 8, .dynamic = true}) {
    return MakeServable("short", batching,
                        [this](std::span<const Tensor> inputs, std::span<const std::string> outputs,
                               CancelToken&) -> Result<std::vector<Tensor>> {
                          ran_on_ = std::this_thread::get_id();
                          clock_.Advance(took_);
                          Tensor output = inputs[0];
                          output.name = outputs[0];
                          return std::vector<Tensor>{output};
                        });
  }
  // Until a run is made here: then it has been proved short, and no worker is busy.
  void Prove(Dispatcher& dispatcher, const std::shared_ptr<Servable>& servable) {
    for (int i = 0; i < ShortRuns::kProof; ++i) {
      ASSERT_TRUE(Send(dispatcher, servable, 1).answer.get());
      ASSERT_FALSE(RanHere());
    }
    while (!RanHere()) ASSERT_TRUE(Send(dispatcher, servable, 1).answer.get());
  }
  bool RanHere() const { return ran_on_ == std::this_thread::get_id(); }

  std::chrono::nanoseconds took_ = 10us;
  std::thread::id ran_on_;
};

TEST_F(RunsHereTest, AShortRunIsMadeByTheSubmittingThread) {
  Dispatcher dispatcher(clock_, admission_, {});
  const auto servable = Short();
  Prove(dispatcher, servable);
  const std::uint64_t before = servable->statistics().Totals().execution_count;
  Sent sent = Send(dispatcher, servable, 3);
  ASSERT_EQ(sent.answer.wait_for(0s), std::future_status::ready);
  EXPECT_EQ(ValuesOf<float>(sent.answer.get()->outputs[0]), (std::vector<float>{3, 3}));
  EXPECT_TRUE(RanHere());
  EXPECT_EQ(servable->statistics().Totals().execution_count, before + 1);
}

TEST_F(RunsHereTest, ARunThatProvedLongGoesBackToTheWorkers) {
  Dispatcher dispatcher(clock_, admission_, {});
  const auto servable = Short();
  Prove(dispatcher, servable);
  took_ = 1s;
  ASSERT_TRUE(Send(dispatcher, servable, 1).answer.get());
  EXPECT_TRUE(RanHere());
  ASSERT_TRUE(Send(dispatcher, servable, 1).answer.get());
  EXPECT_FALSE(RanHere());
}

TEST_F(RunsHereTest, WhoeverFindsTheDeviceBusyWaitsInTheQueue) {
  Dispatcher dispatcher(clock_, admission_, {});
  const auto servable = Short();
  Prove(dispatcher, servable);
  Sent running = Send(dispatcher, single_, 0);
  gate_.WaitForRuns(1);
  Sent sent = Send(dispatcher, servable, 1);
  EXPECT_EQ(dispatcher.queued(), 1u);
  gate_.Open();
  ASSERT_TRUE(sent.answer.get());
  EXPECT_FALSE(RanHere());
  ASSERT_TRUE(running.answer.get());
}

TEST_F(RunsHereTest, AModelThatWaitsForABatchIsQueued) {
  Dispatcher dispatcher(clock_, admission_, {});
  const auto servable =
      Short({.max_batch_size = 2, .dynamic = true, .preferred_sizes = {2}, .max_queue_delay = std::chrono::hours(1)});
  for (int i = 0; i < ShortRuns::kProof; ++i) servable->short_runs().Observe(8, 10us);
  Sent first = Send(dispatcher, servable, 1);
  EXPECT_EQ(dispatcher.queued(), 1u);
  Sent second = Send(dispatcher, servable, 2);
  ASSERT_TRUE(first.answer.get());
  ASSERT_TRUE(second.answer.get());
}

TEST_F(RunsHereTest, WhatIsDeadOnArrivalIsNeverRun) {
  Dispatcher dispatcher(clock_, admission_, {});
  const auto servable = Short();
  Prove(dispatcher, servable);
  ran_on_ = {};
  const auto late = Send(dispatcher, servable, 1, 9, -1ms).answer.get();
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(ran_on_, std::thread::id());
}

}  // namespace
}  // namespace tandem
