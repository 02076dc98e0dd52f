#include "server/infer/inference_service.h"

#include <atomic>
#include <functional>
#include <future>
#include <latch>
#include <new>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include "api/base/format.h"
#include "tests/fakes/eventually.h"
#include "tests/fakes/stoppable_child.h"
#include "tests/server/infer/service_fixture.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using testing::MakeServable;
using testing::MakeTensor;
using ::testing::Not;

TEST_F(InferenceServiceTest, AnswersAndCounts) {
  InferRequest request = Request(1s);
  request.id = "a";
  const auto response = Ask(std::move(request));
  ASSERT_TRUE(response);
  EXPECT_EQ(response->id, "a");
  EXPECT_EQ(Slo(), "met=1 missed=0 rejected=0 ");
  EXPECT_EQ(servable_->statistics().Totals().success.count, 1u);
  // It is under way until its answer has been handed over, which the worker does before it lets go.
  for (int i = 0; i < 1000 && service_.in_flight() > 0; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(service_.in_flight(), 0);
}

TEST_F(InferenceServiceTest, TrainersMakeWayForTheModelOfARequest) {
  const auto policy = MakeColocationPolicy("tandem").value();
  Arbiter arbiter(RealClock::Instance(), *policy, {}, {});
  const auto board = TrainerBoard::Create().value();
  const StoppableChild child;
  const auto lease = arbiter.Admit({.pidfd = child.pidfd(), .board = board.get()});
  const ModelBit slowed = arbiter.models().BitOf("slowed");
  lease->SetGated({{0, SetOf(slowed)}});
  InferenceService service(
      {clock_, dispatcher_, regions_, metrics_, &arbiter},
      [this](std::string_view, std::string_view) { return servable_; }, std::nullopt);
  const auto made_way = [&] { return arbiter.State().hold_heavy.has_value(); };
  const auto ask = [&](ModelBit bit, const std::function<void()>& meanwhile) {
    servable_->SetModelBit(bit);
    run_ = [&](std::span<const Tensor> inputs, std::span<const std::string>,
               CancelToken&) -> Result<std::vector<Tensor>> {
      meanwhile();
      return std::vector<Tensor>{inputs[0]};
    };
    std::promise<void> answered;
    service.Infer(Request(1s), [&](const Result<InferResponse>&) { answered.set_value(); });
    answered.get_future().get();
    EXPECT_TRUE(Eventually([&] { return service.in_flight() == 0 && !made_way(); }));
  };
  ask(slowed, [&] { EXPECT_TRUE(Eventually(made_way)); });
  ask(kAnyModel, [&] { EXPECT_TRUE(Eventually(made_way)); });
  ask(arbiter.models().BitOf("other"), [&] {
    for (int i = 0; i < 2; ++i) {  // The first may have begun before the request came.
      const std::uint64_t decided = arbiter.State().decisions.count();
      const auto another = arbiter.Admit({.pidfd = child.pidfd()});  // By which it looks again.
      EXPECT_TRUE(Eventually([&] { return arbiter.State().decisions.count() > decided; }));
    }
    EXPECT_FALSE(made_way());
  });
}

TEST_F(InferenceServiceTest, WorkOfItsOwnIsUnderWayButNotCounted) {
  const auto item = [&](std::promise<Status>& answer) {
    return WorkItem{.servable = servable_,
                    .inputs = {MakeTensor("x", DataType::kFp32, {1, 2}, std::vector<float>{1, 2})},
                    .outputs = {"y"},
                    .cancel = std::make_shared<CancelToken>(),
                    .done = [&answer](const Result<WorkResult>& result) {
                      answer.set_value(result ? Status() : std::unexpected(result.error()));
                    }};
  };
  std::atomic<std::int64_t> under_way{-1};
  run_ = [&](std::span<const Tensor> inputs, std::span<const std::string>,
             CancelToken&) -> Result<std::vector<Tensor>> {
    under_way = service_.in_flight();
    return std::vector<Tensor>{inputs[0]};
  };
  std::promise<Status> done;
  service_.RunOwn(item(done));
  EXPECT_TRUE(done.get_future().get());
  EXPECT_EQ(under_way, 1);
  EXPECT_THAT(Text(), Not(HasSubstr("model=\"m\"")));
  service_.StopAdmitting();
  std::promise<Status> refused;
  service_.RunOwn(item(refused));
  EXPECT_EQ(refused.get_future().get().error().code, ErrorCode::kUnavailable);
  for (int i = 0; i < 1000 && service_.in_flight() > 0; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(service_.in_flight(), 0);
}

class UnreadTest : public InferenceServiceTest {
 protected:
  void Learn(std::chrono::nanoseconds took) {
    for (int i = 0; i < 30; ++i) servable_->latency().Observe(1, took, clock_.Now());
  }
  InferenceService& Serve(std::optional<std::chrono::microseconds> default_slo = {}) {
    return by_deadline_.emplace(
        InferenceService::Parts{clock_, dispatcher_by_deadline_, regions_, metrics_},
        [this](std::string_view model, std::string_view) -> Result<std::shared_ptr<Servable>> {
          if (model != "m") return Fail(ErrorCode::kNotFound, "no model '{}'", model);
          return servable_;
        },
        default_slo);
  }

  // Which are no requests, but have been read.
  void ReadPlainBodies(InferenceService& service) {
    for (int i = 0; i < 40; ++i) {
      InferRequest request = Request();
      request.inputs.clear();
      service.Infer(std::move(request), [](const Result<InferResponse>&) {});
    }
  }

  // It tells when it has begun, and waits to be let on.
  void HoldFirstRun() {
    run_ = [this, first = true](std::span<const Tensor> inputs, std::span<const std::string> outputs,
                                CancelToken&) mutable -> Result<std::vector<Tensor>> {
      if (std::exchange(first, false)) {
        running_.set_value();
        go_on_.get_future().wait();
      }
      Tensor output = inputs[0];
      output.name = outputs[0];
      return std::vector<Tensor>{output};
    };
  }

  std::promise<void> running_;
  std::promise<void> go_on_;
  DeadlineAdmission by_deadline_admission_;
  std::optional<InferenceService> by_deadline_;
  // Goes first: its last answers go through the service.
  Dispatcher dispatcher_by_deadline_{clock_, by_deadline_admission_, {.max_queued = 4}};
};

TEST_F(UnreadTest, WhatCannotBeInTimeIsRefusedByItsHeadAndCounted) {
  Learn(300ms);
  InferenceService& service = Serve();
  const auto refused = service.RefuseUnread("m", "", 100ms);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code, ErrorCode::kUnavailable);
  EXPECT_THAT(refused->message, HasSubstr("the deadline cannot be met"));
  EXPECT_EQ(Slo(), "met=0 missed=0 rejected=1 ");
  EXPECT_EQ(servable_->statistics().Totals().failures[static_cast<std::size_t>(FailureReason::kRejected)], 1u);
  EXPECT_FALSE(service.RefuseUnread("m", "", 1s)) << "it may be in time";
  EXPECT_FALSE(service.RefuseUnread("m", "", std::nullopt)) << "it has no deadline";
  EXPECT_FALSE(service.RefuseUnread("other", "", 100ms)) << "answered as what it is when it is here";
  EXPECT_EQ(Slo(), "met=0 missed=0 rejected=1 ");
}

TEST_F(UnreadTest, WithoutAWordOfItsOwnTheDefaultDeadlineCountsOnceItIsKnownToSayNone) {
  Learn(300ms);
  InferenceService& service = Serve(100ms);
  EXPECT_FALSE(service.RefuseUnread("m", "", std::nullopt)) << "its body may name another";
  ReadPlainBodies(service);
  EXPECT_FALSE(service.RefuseUnread("m", "", std::nullopt)) << "one is read, to see";
  EXPECT_TRUE(service.RefuseUnread("m", "", std::nullopt));
  EXPECT_TRUE(service.RefuseUnread("m", "", std::nullopt));
  clock_.Advance(1s);
  Learn(300ms);
  EXPECT_FALSE(service.RefuseUnread("m", "", std::nullopt)) << "one a second";
  EXPECT_TRUE(service.RefuseUnread("m", "", std::nullopt));
  // Once a body has named a deadline the next may do so, too.
  InferRequest named = Request(10s);
  named.inputs.clear();
  service.Infer(std::move(named), [](const Result<InferResponse>&) {});
  ReadPlainBodies(service);
  EXPECT_FALSE(service.RefuseUnread("m", "", std::nullopt));
  EXPECT_TRUE(service.RefuseUnread("m", "", 100ms)) << "no body makes it later than that";
}

TEST_F(UnreadTest, APriorityThatItsBodyMayNameIsNotHeldAgainstIt) {
  Learn(100s);
  HoldFirstRun();
  InferenceService& service = Serve();
  std::latch left(5);
  const auto send = [&](std::uint64_t priority) {
    InferRequest request = Request();
    request.priority = priority;
    request.deadline = clock_.Now() + 480s;
    service.Infer(std::move(request), [&](const Result<InferResponse>&) { left.count_down(); });
  };
  send(0);
  running_.get_future().wait();
  for (int i = 0; i < 3; ++i) send(0);
  // 100 s of what runs and 300 s of what waits stand before it, and its own run, unless it is more urgent.
  EXPECT_FALSE(service.RefuseUnread("m", "", 490s)) << "it may go before the others";
  EXPECT_TRUE(service.RefuseUnread("m", "", 90s)) << "but not before what runs";
  ReadPlainBodies(service);
  EXPECT_FALSE(service.RefuseUnread("m", "", 490s)) << "one is read, to see";
  EXPECT_TRUE(service.RefuseUnread("m", "", 490s));
  send(1);
  EXPECT_FALSE(service.RefuseUnread("m", "", 490s)) << "another may be so urgent, too";
  go_on_.set_value();
  left.wait();
}

TEST_F(UnreadTest, AQueueThatIsFullNowIsNoReason) {
  Learn(10ms);
  HoldFirstRun();
  InferenceService& service = Serve();
  std::latch left(6);
  std::atomic<int> refused = 0;
  const auto send = [&] {
    service.Infer(Request(), [&](const Result<InferResponse>& response) {
      if (!response) ++refused;
      left.count_down();
    });
  };
  send();
  running_.get_future().wait();
  for (int i = 0; i < 5; ++i) send();
  EXPECT_EQ(refused, 1) << "four may wait";
  EXPECT_FALSE(service.RefuseUnread("m", "", 10s));
  go_on_.set_value();
  left.wait();
}

TEST_F(InferenceServiceTest, ALateAnswerAndAFailedRunAreMissed) {
  run_ = [this](std::span<const Tensor> inputs, std::span<const std::string> outputs, CancelToken&) {
    clock_.Advance(2s);
    Tensor output = inputs[0];
    output.name = outputs[0];
    return std::vector<Tensor>{output};
  };
  ASSERT_TRUE(Ask(Request(1s)));
  EXPECT_EQ(Slo(), "met=0 missed=1 rejected=0 ");
  run_ = [](std::span<const Tensor>, std::span<const std::string>, CancelToken&) -> Result<std::vector<Tensor>> {
    return Fail(ErrorCode::kInternal, "broken");
  };
  EXPECT_FALSE(Ask(Request(1s)));
  EXPECT_EQ(Slo(), "met=0 missed=2 rejected=0 ");
  EXPECT_EQ(servable_->statistics().Totals().failures[static_cast<std::size_t>(FailureReason::kBackend)], 1u);
}

TEST_F(InferenceServiceTest, ACallThatIsCancelledAtItsDeadlineIsMissed) {
  InferRequest request = Request(1s);
  const auto cancel = request.cancel;
  run_ = [&](std::span<const Tensor>, std::span<const std::string>, CancelToken&) -> Result<std::vector<Tensor>> {
    clock_.Advance(1s);
    cancel->Cancel();
    return Fail(ErrorCode::kCancelled, "stopped");
  };
  EXPECT_FALSE(Ask(std::move(request)));
  EXPECT_EQ(Slo(), "met=0 missed=1 rejected=0 ");
  EXPECT_THAT(Text(), HasSubstr(R"(tandem_request_latency_seconds_count{model="m",outcome="expired"} 1)"));
}

TEST_F(InferenceServiceTest, WhatIsRefusedIsRejectedAndAMistakeCountsNowhere) {
  InferRequest wrong = Request(1s);
  wrong.inputs.clear();
  EXPECT_EQ(Ask(std::move(wrong)).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(Slo(), "met=0 missed=0 rejected=0 ");
  InferRequest late = Request(1s);
  clock_.Advance(2s);
  EXPECT_EQ(Ask(std::move(late)).error().code, ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(Slo(), "met=0 missed=0 rejected=1 ");
  service_.StopAdmitting();
  EXPECT_EQ(Ask(Request(1s)).error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(Text(), HasSubstr(R"(tandem_slo_rejected_total{model=""} 1)"));
  EXPECT_EQ(service_.in_flight(), 0);
}

TEST_F(InferenceServiceTest, AnAnswerThatFindsNoMemoryIs503AndTheNextIsAnswered) {
  service_.Infer(Request(), [](const Result<InferResponse>&) { throw std::bad_alloc(); });
  EXPECT_TRUE(Ask(Request()));
  while (service_.in_flight() > 0) std::this_thread::yield();
}

class RequestLogTest : public InferenceServiceTest {
 protected:
  static void SetUpTestSuite() { SetUpLog(LogLevel::kInfo, LogFormat::kText); }
  void TearDown() override { SetLogLevels({}); }
  std::string LogOf(InferRequest request) {
    ::testing::internal::CaptureStderr();
    static_cast<void>(Ask(std::move(request)));
    EXPECT_TRUE(FlushLog(std::chrono::minutes(1)));
    return ::testing::internal::GetCapturedStderr();
  }
};

TEST_F(RequestLogTest, SaysNothingOfRequestsUntilAsked) {
  EXPECT_EQ(LogOf(Request()), "");
  InferRequest wrong = Request();
  wrong.inputs.clear();
  EXPECT_EQ(LogOf(std::move(wrong)), "");
}

TEST_F(RequestLogTest, WritesALineWithTheClientsIdOrOneOfItsOwn) {
  SetLogLevels(LevelsFrom(LogLevel::kDebug));
  InferRequest request = Request();
  request.id = "client-7";
  const std::string named = LogOf(std::move(request));
  EXPECT_THAT(named, HasSubstr(" debug request id=client-7 model=m version=1 outcome=success queue_us="));
  EXPECT_THAT(named, HasSubstr(" total_us="));
  EXPECT_THAT(LogOf(Request()), HasSubstr("id=r-1 "));
  InferRequest wrong = Request();
  wrong.inputs.clear();
  const std::string failed = LogOf(std::move(wrong));
  EXPECT_THAT(failed, HasSubstr(" debug request id=r-2 "));
  EXPECT_THAT(failed, HasSubstr("outcome=invalid"));
  EXPECT_THAT(failed, HasSubstr("reason=model 'm' needs input 'x'"));
}

TEST_F(RequestLogTest, OurOwnFailuresAreErrorsAndCannotFloodTheLog) {
  run_ = [](std::span<const Tensor>, std::span<const std::string>, CancelToken&) -> Result<std::vector<Tensor>> {
    return Fail(ErrorCode::kInternal, "broken");
  };
  EXPECT_THAT(LogOf(Request()), HasSubstr(" error request id=r-1 model=m version=1 outcome=error"));
  for (int i = 1; i < RequestLog::kErrorsPerSecond; ++i) EXPECT_NE(LogOf(Request()), "");
  EXPECT_EQ(LogOf(Request()), "");
  EXPECT_EQ(LogOf(Request()), "");
  clock_.Advance(1s);
  EXPECT_THAT(LogOf(Request()), HasSubstr("left_out=2 reason=broken"));
  EXPECT_THAT(LogOf(Request()), Not(HasSubstr("left_out")));
}

}  // namespace
}  // namespace tandem
