// What is told of requests that real parts have served: the service, the dispatcher and the recorder.

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/registry.h>

#include "colocation/arbiter.h"
#include "server/infer/inference_service.h"
#include "server/trace/request_words.h"
#include "tests/fakes/fake_session.h"

namespace tandem::trace {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::MakeServable;
using testing::MakeTensor;
using ::testing::Not;
using ::testing::StartsWith;

// A model whose runs take 5 ms of the fake clock, and wait for the test when it says so.
class StoryTest : public ::testing::Test {
 protected:
  struct Sent {
    std::future<Result<InferResponse>> answer;
    std::shared_ptr<CancelToken> cancel;
  };

  Sent Send(const std::string& id, std::optional<std::chrono::microseconds> slo = {}) {
    InferRequest request;
    request.model = "m";
    request.id = id;
    request.inputs = {{.tensor = MakeTensor("x", DataType::kFp32, {1, 2}, std::vector<float>{1, 2}), .shared = {}}};
    request.slo = slo;
    request.arrival = clock_.Now();
    request.cancel = std::make_shared<CancelToken>();
    request.number = service_.NextNumber();
    return Send(std::move(request));
  }
  Sent Send(InferRequest request) {
    auto promise = std::make_shared<std::promise<Result<InferResponse>>>();
    Sent sent{.answer = promise->get_future(), .cancel = request.cancel};
    service_.Infer(std::move(request),
                   [promise](Result<InferResponse> response) { promise->set_value(std::move(response)); });
    return sent;
  }
  // A run that goes on until the test lets it end.
  Sent Occupy() {
    held_ = true;
    running_ = 0;
    Sent sent = Send("first");
    while (running_.load() == 0) std::this_thread::yield();
    return sent;
  }
  void TearDown() override { held_ = false; }
  void Learn() {
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(Send("learn").answer.get());
  }
  RequestStory StoryOf(const std::string& asked) {
    auto story = TellStory(CopyOf(recorder_), asked, clock_.Now());
    EXPECT_TRUE(story) << story.error().message;
    return story.value_or(RequestStory{});
  }
  std::vector<std::string> Words(const std::string& asked) { return WordsOf(StoryOf(asked)); }

  Result<std::vector<Tensor>> Compute(std::span<const Tensor> inputs, std::span<const std::string> outputs,
                                      CancelToken& cancel) {
    running_.fetch_add(1);
    while (held_.load() && !cancel.cancelled()) std::this_thread::sleep_for(1ms);
    clock_.Advance(5ms);
    if (cancel.cancelled()) return Fail(ErrorCode::kCancelled, "stopped");
    Tensor output = inputs[0];
    output.name = outputs[0];
    return std::vector<Tensor>{output};
  }

  FakeClock clock_;
  FlightRecorder recorder_{1024};
  std::atomic<bool> held_{false};
  std::atomic<int> running_{0};
  std::shared_ptr<Servable> servable_ =
      MakeServable("m", {.max_batch_size = 4, .dynamic = true},
                   [this](std::span<const Tensor> inputs, std::span<const std::string> outputs, CancelToken& cancel) {
                     return Compute(inputs, outputs, cancel);
                   });
  DeadlineAdmission admission_;
  prometheus::Registry registry_;
  RequestMetrics metrics_{registry_};
  SharedRegions regions_;
  Dispatcher dispatcher_{clock_, admission_, {.recorder = &recorder_}};
  InferenceService service_{
      {clock_, dispatcher_, regions_, metrics_, nullptr, &recorder_},
      [this](std::string_view model, std::string_view version) -> Result<std::shared_ptr<Servable>> {
        if (model == "loading") return Fail(ErrorCode::kUnavailable, "it is loading");
        if (model == "m" && version == "7") return Fail(ErrorCode::kNotFound, "no version 7");
        if (model != "m") return Fail(ErrorCode::kNotFound, "no model '{}'", model);
        return servable_;
      },
      std::nullopt};
};

TEST_F(StoryTest, ARequestThatWaitedBehindABatch) {
  Sent first = Occupy();
  Sent second = Send("second", 1s);
  clock_.Advance(3ms);
  held_ = false;
  ASSERT_TRUE(first.answer.get());
  ASSERT_TRUE(second.answer.get());
  EXPECT_THAT(Words("second"),
              ElementsAre("answered after 13.0 ms, 987 ms before its deadline",
                          "let in, as what its own run takes was not known; 0 µs of work ahead, deadline in 1000 ms",
                          "waited 8.0 ms: batch 1 of m (1 request) was running for 8.0 ms of it",
                          "ran for 5.0 ms alone in batch 2 of m, version 1, on worker 0; 8.0 ms were expected"));
  const RequestStory story = StoryOf("second");
  EXPECT_EQ(story.number, 2u);
  EXPECT_EQ(story.slo, SloVerdict::kMet);
}

TEST_F(StoryTest, RequestsThatSharedARun) {
  Sent first = Occupy();
  std::vector<Sent> sent;
  for (const char* id : {"a", "b", "c"}) sent.push_back(Send(id));
  held_ = false;
  for (Sent& one : sent) ASSERT_TRUE(one.answer.get());
  for (const char* id : {"a", "b", "c"}) {
    EXPECT_THAT(Words(id), Contains(StartsWith("ran for 5.0 ms together with 2 other requests in batch 2 of m")));
  }
  EXPECT_EQ(StoryOf("b").runs.at(0).elements, 3);
  EXPECT_THAT(Words("a")[0], HasSubstr("it had no deadline"));
}

TEST_F(StoryTest, ARequestThatWasRefusedWhenItCame) {
  Learn();
  Sent first = Occupy();
  Sent refused = Send("refused", 8ms);
  EXPECT_EQ(refused.answer.get().error().code, ErrorCode::kUnavailable);
  held_ = false;
  EXPECT_THAT(Words("refused"),
              ElementsAre("refused 0 µs after its arrival",
                          AllOf(StartsWith("refused at arrival: 5.0 ms of work were ahead, its own run was expected to "
                                           "take up to "),
                                EndsWith(", deadline in 8.0 ms"))));
  EXPECT_EQ(StoryOf("refused").slo, SloVerdict::kRejected);
  ASSERT_TRUE(first.answer.get());
}

TEST_F(StoryTest, ARequestWhoseDeadlinePassedWhileItWaited) {
  Sent first = Occupy();
  Sent late = Send("late", 10ms);
  clock_.Advance(11ms);
  held_ = false;
  EXPECT_EQ(late.answer.get().error().code, ErrorCode::kDeadlineExceeded);
  const auto words = Words("late");
  EXPECT_THAT(words[0], StartsWith("given up after "));
  EXPECT_THAT(words, Contains("its deadline passed while it waited; it was never computed"));
  EXPECT_THAT(words, Contains(HasSubstr("batch 1 of m (1 request) was running")));
  EXPECT_THAT(words, Not(Contains(HasSubstr("ran for"))));
}

TEST_F(StoryTest, ARequestWhoseClientWentAway) {
  Sent first = Occupy();
  Sent waiting = Send("waiting");
  clock_.Advance(2ms);
  waiting.cancel->Cancel();
  EXPECT_FALSE(waiting.answer.get());
  EXPECT_THAT(Words("waiting"), Contains("its client went away while it waited; it was never computed"));
  first.cancel->Cancel();
  EXPECT_FALSE(first.answer.get());
  const auto words = Words("first");
  EXPECT_THAT(words[0], HasSubstr("its client had gone"));
  EXPECT_THAT(words, Contains(HasSubstr("it was stopped: nobody waited for it any more")));
}

TEST_F(StoryTest, ARequestThatIsUnderWay) {
  Sent first = Occupy();
  Sent second = Send("second", 1s);
  clock_.Advance(2ms);
  EXPECT_THAT(Words("first")[0], StartsWith("is under way since 2.0 ms"));
  EXPECT_THAT(Words("first"), Contains(StartsWith("runs since 2.0 ms alone in batch 1")));
  EXPECT_THAT(Words("second"),
              Contains("has waited 2.0 ms so far: batch 1 of m (1 request) was running for 2.0 ms of it"));
  held_ = false;
  ASSERT_TRUE(first.answer.get());
  ASSERT_TRUE(second.answer.get());
}

TEST_F(StoryTest, AWrongRequestAndOneForNobody) {
  InferRequest wrong;
  wrong.model = "m";
  wrong.id = "wrong";
  wrong.arrival = clock_.Now();
  wrong.cancel = std::make_shared<CancelToken>();
  wrong.number = service_.NextNumber();
  EXPECT_FALSE(Send(std::move(wrong)).answer.get());
  EXPECT_THAT(Words("wrong"), ElementsAre("refused 0 µs after its arrival",
                                          "refused at arrival: the request was wrong; its answer said what"));
  InferRequest stray;
  stray.model = "nobody";
  stray.arrival = clock_.Now();
  stray.cancel = std::make_shared<CancelToken>();
  stray.number = service_.NextNumber();
  EXPECT_FALSE(Send(std::move(stray)).answer.get());
  EXPECT_THAT(Words("r-2"), ElementsAre("refused 0 µs after its arrival",
                                        "refused at arrival: it asked for a model that is not served"));
}

TEST_F(StoryTest, WhyARequestFoundNoModelToRun) {
  const auto why = [&](const char* model, const char* version) {
    InferRequest request;
    request.model = model;
    request.version = version;
    request.arrival = clock_.Now();
    request.cancel = std::make_shared<CancelToken>();
    request.number = service_.NextNumber();
    const std::string name = RequestName(request.number);
    EXPECT_FALSE(Send(std::move(request)).answer.get());
    return Words(name).at(1);
  };
  EXPECT_EQ(why("nobody", "7"), "refused at arrival: it asked for a model that is not served");
  EXPECT_EQ(why("m", "7"), "refused at arrival: its model is not served in the version that it asked for");
  EXPECT_EQ(StoryOf("r-2").model, "m");
  EXPECT_EQ(why("loading", ""), "refused at arrival: its model was not ready");
  service_.StopAdmitting();
  EXPECT_EQ(why("m", ""), "refused at arrival: the server was shutting down");
}

TEST_F(StoryTest, OfAModelWhoseNameIsNotKept) {
  for (int i = 0; i < 100'000; ++i) (void)recorder_.names().NumberOf("model-" + std::to_string(i));
  Sent first = Occupy();
  Sent second = Send("second");
  clock_.Advance(3ms);
  held_ = false;
  ASSERT_TRUE(first.answer.get());
  ASSERT_TRUE(second.answer.get());
  EXPECT_EQ(StoryOf("second").model, "");
  EXPECT_THAT(Words("second"), Not(Contains(HasSubstr("not served"))));
  EXPECT_THAT(Words("second"), Contains(HasSubstr("batch 1 of a model whose name is not kept (1 request)")));
}

TEST_F(StoryTest, WhatWasLearntLongAgoDidNotCount) {
  Learn();
  clock_.Advance(1min);
  ASSERT_TRUE(Send("tries", 3ms).answer.get());
  EXPECT_THAT(Words("tries"), Contains(HasSubstr("is a guess or was learnt too long ago, deadline in 3.0 ms")));
}

TEST_F(StoryTest, ARequestThatWaitedForCompany) {
  servable_ = MakeServable("m", {.max_batch_size = 4, .dynamic = true, .max_queue_delay = 20ms},
                           [this](std::span<const Tensor> inputs, std::span<const std::string> outputs,
                                  CancelToken& cancel) { return Compute(inputs, outputs, cancel); });
  Sent alone = Send("alone");
  clock_.Advance(5ms);
  EXPECT_THAT(Words("alone"), Contains("has waited 5.0 ms so far: a worker was free, and its model waits for company "
                                       "(max_queue_delay)"));
  clock_.Advance(20ms);
  ASSERT_TRUE(alone.answer.get());
}

TEST_F(StoryTest, ServersNumbersAndTheNewestOfSeveralWithOneId) {
  ASSERT_TRUE(Send("same").answer.get());
  ASSERT_TRUE(Send("same").answer.get());
  ASSERT_TRUE(Send("").answer.get());
  ASSERT_TRUE(Send("1").answer.get());
  EXPECT_EQ(StoryOf("same").number, 2u);
  EXPECT_EQ(StoryOf("r-1").number, 1u);
  EXPECT_EQ(StoryOf("3").number, 3u);
  EXPECT_EQ(StoryOf("1").number, 4u) << "what a client calls 1 comes before the server's number 1";
  EXPECT_EQ(StoryOf("r-3").id, "");
  ASSERT_TRUE(Send("r-1").answer.get());
  ASSERT_TRUE(Send("r-77").answer.get());
  EXPECT_EQ(StoryOf("r-1").number, 1u) << "the server's own names come before what a client calls so";
  EXPECT_EQ(StoryOf("r-77").number, 6u);
}

TEST_F(StoryTest, WhatIsNotThereIsSaidToBeGone) {
  const auto early = TellStory(CopyOf(recorder_), "nobody", clock_.Now());
  ASSERT_FALSE(early);
  EXPECT_THAT(early.error().message, HasSubstr("nothing was overwritten since the server started"));
  ASSERT_TRUE(Send("first").answer.get());
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(Send("").answer.get());
  for (const char* asked : {"first", "r-1", "1", "r-", "r-99999", "nobody", "18446744073709551616"}) {
    const auto story = TellStory(CopyOf(recorder_), asked, clock_.Now());
    ASSERT_FALSE(story) << asked;
    EXPECT_EQ(story.error().code, ErrorCode::kNotFound);
    EXPECT_THAT(story.error().message, HasSubstr(std::string("no request '") + asked + "'"));
    EXPECT_THAT(story.error().message, HasSubstr("reaches back "));
    EXPECT_THAT(story.error().message, HasSubstr("1024 records"));
  }
}

// Trainers under an arbiter that stops nobody.
class TrainingStoryTest : public StoryTest {
 protected:
  std::vector<std::string> Told() {
    clock_.Advance(2ms);
    EXPECT_TRUE(Send("one").answer.get());
    return Words("one");
  }

  const std::unique_ptr<const ColocationPolicy> idle_ = MakeColocationPolicy("idle").value();
  Arbiter arbiter_{clock_, *idle_, {}, {}, &recorder_};
};

TEST_F(TrainingStoryTest, WithoutATrainerNothingIsSaidOfTraining) {
  EXPECT_THAT(Told(), Not(Contains(HasSubstr("train"))));
  auto lease = arbiter_.Admit({});
  clock_.Advance(1ms);
  lease.reset();
  EXPECT_THAT(Told(), Not(Contains(HasSubstr("train"))));
}

TEST_F(TrainingStoryTest, APausedTrainerWasNotLetRun) {
  const auto lease = arbiter_.Admit({});
  EXPECT_THAT(Told(), Contains("training was let run all the time: 1 trainer"));
  lease->SetPaused(true);
  EXPECT_THAT(Told(), Contains("training was held from 2.0 ms before its arrival to now because a person paused it"));
  EXPECT_THAT(Told(), Not(Contains(HasSubstr("let run"))));
  lease->SetPaused(false);
  EXPECT_THAT(Told(), Contains("training was let run all the time: 1 trainer"));
}

TEST_F(TrainingStoryTest, OneThatIsPausedMeanwhileWasHeldFromThenOn) {
  const auto lease = arbiter_.Admit({});
  Sent first = Occupy();
  clock_.Advance(3ms);
  lease->SetPaused(true);
  clock_.Advance(1ms);
  lease->SetPaused(false);
  held_ = false;
  ASSERT_TRUE(first.answer.get());
  EXPECT_THAT(Words("first"),
              Contains("training was held from 3.0 ms after its arrival to 4.0 ms after its arrival because a person "
                       "paused it"));
}

TEST_F(TrainingStoryTest, OfTwoTrainersOneHasTheTurn) {
  const auto one = arbiter_.Admit({});
  const auto other = arbiter_.Admit({});
  other->SetWaiting(true);
  EXPECT_THAT(Told(), Contains("training was let run all the time: 1 trainer; 1 other waited for its turn"));
  Sent first = Occupy();
  clock_.Advance(1ms);
  one->SetWaiting(true);
  other->SetWaiting(false);
  clock_.Advance(1ms);
  held_ = false;
  ASSERT_TRUE(first.answer.get());
  EXPECT_THAT(Words("first"), Contains("training was let run all the time: 1 trainer; 1 other waited for its turn"));
  one->SetPausedAtBoundary(true);
  EXPECT_THAT(Told(), Contains("training was let run all the time: 1 trainer; 1 other was paused"));
}

TEST_F(StoryTest, AShortRunByTheThreadThatBroughtIt) {
  const auto quick = MakeServable("quick", {.max_batch_size = 4});
  servable_ = quick;
  // Once they are known to be short; and the worker must have let go of the one before.
  const auto at_once = [&] {
    EXPECT_TRUE(Send("quick").answer.get());
    return StoryOf("quick").admission->verdict == Admitted::kAtOnce;
  };
  for (int i = 0; i < 10'000 && !at_once(); ++i) std::this_thread::yield();
  EXPECT_THAT(Words("quick"),
              ElementsAre(StartsWith("answered after"),
                          "the device was free and such runs are short, so the thread that brought it ran it",
                          HasSubstr("on the thread that brought it")));
}

}  // namespace
}  // namespace tandem::trace
