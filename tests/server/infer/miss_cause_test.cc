// Whether training is to blame for a request that is late, or refused.

#include <future>

#include <gtest/gtest.h>

#include "tests/server/infer/service_fixture.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;

// Runs that take what the test says, 10 ms without training.
class MissCauseTest : public InferenceServiceTest {
 protected:
  MissCauseTest() {
    for (int i = 0; i < 30; ++i) {
      servable_->latency().Observe(1, 10ms, clock_.Now());
      servable_->alone().Observe(1, 10ms, clock_.Now());
    }
    run_ = [this](std::span<const Tensor> inputs, std::span<const std::string> outputs,
                  CancelToken&) -> Result<std::vector<Tensor>> {
      if (std::exchange(hold_first_, false)) {
        running_.set_value();
        go_on_.get_future().wait();
      } else {
        clock_.Advance(took_);
      }
      Tensor output = inputs[0];
      output.name = outputs[0];
      return std::vector<Tensor>{output};
    };
  }
  // With a trainer that never stops.
  void RunFor(std::chrono::nanoseconds time) {
    const MonotonicTime until = clock_.Now() + time;
    while (clock_.Now() < until) {
      EXPECT_TRUE(Send(1h).get());
      clock_.Advance(1s);
    }
  }
  // Has one under way that ends when the test lets it.
  void Occupy() {
    hold_first_ = true;
    tolled_.Infer(Request(), [this](const Result<InferResponse>&) { first_.set_value(); });
    running_.get_future().wait();
  }
  std::future<Result<InferResponse>> Send(std::chrono::microseconds slo) {
    auto answer = std::make_shared<std::promise<Result<InferResponse>>>();
    auto future = answer->get_future();
    tolled_.Infer(Request(slo), [answer](Result<InferResponse> response) { answer->set_value(std::move(response)); });
    return future;
  }
  std::string Causes() const {
    const std::string text = Text();
    std::string counts;
    for (const char* cause : {"training", "other", "unknown"}) {
      const std::string key = Format("tandem_slo_missed_by_cause_total{{cause=\"{}\",model=\"m\"}} ", cause);
      const auto at = text.find(key);
      counts += Format("{}={} ", cause, at == std::string::npos ? '-' : text[at + key.size()]);
    }
    return counts;
  }

  std::chrono::nanoseconds took_ = 10ms;
  bool hold_first_ = false;
  std::promise<void> running_;
  std::promise<void> go_on_;
  std::promise<void> first_;
  TrainingToll toll_;
  DeadlineAdmission by_deadline_;
  InferenceService::FindServable find_ = [this](std::string_view, std::string_view) { return servable_; };
  // Go before what they answer through.
  std::optional<InferenceService> service_of_refusals_;
  Dispatcher refusing_{clock_, by_deadline_, {.toll = &toll_}};
  Dispatcher tolling_{clock_, admission_, {.toll = &toll_}};
  InferenceService tolled_{{clock_, tolling_, regions_, metrics_, nullptr, nullptr, &toll_}, find_, std::nullopt};
};

TEST_F(MissCauseTest, TrainingIsToBlameWhenItsRunWouldHaveBeenInTimeWithoutIt) {
  toll_.TrainerRuns();
  took_ = 30ms;
  EXPECT_TRUE(Send(20ms).get());
  EXPECT_EQ(Causes(), "training=1 other=0 unknown=0 ");
  EXPECT_TRUE(Send(5ms).get());
  EXPECT_EQ(Causes(), "training=1 other=1 unknown=0 ") << "10 ms would have been too long, too";
  EXPECT_TRUE(Send(40ms).get());
  EXPECT_EQ(Causes(), "training=1 other=1 unknown=0 ") << "it was met";
}

TEST_F(MissCauseTest, WithoutATrainerItIsNotToBlame) {
  took_ = 30ms;
  EXPECT_TRUE(Send(20ms).get());
  EXPECT_EQ(Causes(), "training=0 other=1 unknown=0 ");
}

TEST_F(MissCauseTest, TheRunsThatItWaitedForCountToo) {
  toll_.TrainerRuns();
  Occupy();
  auto late = Send(25ms);
  clock_.Advance(20ms);
  go_on_.set_value();
  EXPECT_TRUE(late.get());
  EXPECT_EQ(Causes(), "training=1 other=0 unknown=0 ") << "10 ms and 10 ms would have been in time";
}

TEST_F(MissCauseTest, OneThatWasNeverComputedWouldHaveNeededItsOwnRun) {
  toll_.TrainerRuns();
  Occupy();
  auto in_time = Send(20ms);
  auto late_anyway = Send(15ms);
  clock_.Advance(21ms);
  EXPECT_FALSE(in_time.get());
  EXPECT_FALSE(late_anyway.get());
  EXPECT_EQ(Causes(), "training=1 other=1 unknown=0 ");
  EXPECT_EQ(Slo(), "met=0 missed=0 rejected=2 ");
  go_on_.set_value();
  first_.get_future().wait();
}

TEST_F(MissCauseTest, ARefusalIsTrainingsFaultWhenTheTimesWithoutItWouldHaveLetItIn) {
  servable_->latency().Recall({.elements = 1, .typical = 30ms, .spread = 1});
  InferenceService& service = service_of_refusals_.emplace(
      InferenceService::Parts{clock_, refusing_, regions_, metrics_, nullptr, nullptr, &toll_}, find_, std::nullopt);
  EXPECT_TRUE(service.RefuseUnread("m", "", 20ms));
  EXPECT_EQ(Causes(), "training=0 other=1 unknown=0 ") << "nothing is trained";
  toll_.TrainerRuns();
  EXPECT_TRUE(service.RefuseUnread("m", "", 20ms));
  EXPECT_TRUE(service.RefuseUnread("m", "", 5ms));
  EXPECT_EQ(Causes(), "training=1 other=2 unknown=0 ");
  bool refused = false;
  service.Infer(Request(20ms), [&](const Result<InferResponse>& response) { refused = !response; });
  EXPECT_TRUE(refused);
  EXPECT_EQ(Causes(), "training=2 other=2 unknown=0 ");
}

TEST_F(MissCauseTest, OnlyRunsWithoutTrainingTeachWhatRunsTakeWithoutIt) {
  const auto alone = [&] { return servable_->alone().Predict(1)->typical; };
  toll_.TrainerRuns();
  took_ = 30ms;
  for (int i = 0; i < 30; ++i) EXPECT_TRUE(Send(1s).get());
  EXPECT_EQ(alone(), 10ms);
  EXPECT_GT(servable_->latency().Predict(1)->typical, 15ms);
  toll_.TrainerStops(clock_.Now());
  clock_.Advance(1s);
  took_ = 5ms;
  EXPECT_TRUE(Send(1s).get());
  EXPECT_LT(alone(), 10ms);
}

TEST_F(MissCauseTest, AModelThatBecomesSlowerByItselfIsNotTrainingsFaultForEver) {
  toll_.TrainerRuns();
  took_ = 20ms;
  RunFor(4min);
  EXPECT_TRUE(Send(15ms).get());
  EXPECT_EQ(Causes(), "training=1 other=0 unknown=0 ") << "its runs alone were seen lately";
  RunFor(2min);
  EXPECT_TRUE(Send(15ms).get());
  EXPECT_EQ(Causes(), "training=1 other=0 unknown=1 ") << "it may be slower without training, too";
  EXPECT_TRUE(Send(5ms).get());
  EXPECT_EQ(Causes(), "training=1 other=1 unknown=1 ") << "however fast it was: this is too little";
  toll_.TrainerStops(clock_.Now());
  RunFor(1min);
  toll_.TrainerRuns();
  EXPECT_TRUE(Send(15ms).get());
  EXPECT_EQ(Causes(), "training=1 other=2 unknown=1 ") << "it is";
}

TEST_F(MissCauseTest, WhileMostRunsAreAsShortAsAloneTrainingIsToBlameForTheOthers) {
  toll_.TrainerRuns();
  RunFor(1h);
  took_ = 20ms;
  EXPECT_TRUE(Send(15ms).get());
  EXPECT_EQ(Causes(), "training=1 other=0 unknown=0 ");
}

TEST_F(MissCauseTest, WhatIsKnownFromBeforehandGrowsOldBesideTraining) {
  servable_ = testing::MakeServable("m", {.max_batch_size = 4}, run_);
  servable_->latency().Recall({.elements = 1, .typical = 10ms, .spread = 1});
  servable_->alone().Recall({.elements = 1, .typical = 10ms, .spread = 1});
  toll_.TrainerRuns();
  took_ = 20ms;
  RunFor(1min);
  EXPECT_TRUE(Send(15ms).get());
  EXPECT_EQ(Causes(), "training=1 other=0 unknown=0 ");
  RunFor(5min);
  EXPECT_TRUE(Send(15ms).get());
  EXPECT_EQ(Causes(), "training=1 other=0 unknown=1 ");
}

TEST_F(MissCauseTest, OneThatNeverRanAloneHasNothingToBeComparedWith) {
  servable_ = testing::MakeServable("m", {.max_batch_size = 4}, run_);
  toll_.TrainerRuns();
  RunFor(10s);
  took_ = 30ms;
  EXPECT_TRUE(Send(20ms).get());
  EXPECT_EQ(Causes(), "training=0 other=0 unknown=1 ");
}

TEST_F(MissCauseTest, ARefusalByOldTimesHasNoKnownCause) {
  servable_->latency().Recall({.elements = 1, .typical = 30ms, .spread = 1});
  clock_.Advance(6min);
  InferenceService& service = service_of_refusals_.emplace(
      InferenceService::Parts{clock_, refusing_, regions_, metrics_, nullptr, nullptr, &toll_}, find_, std::nullopt);
  toll_.TrainerRuns();
  EXPECT_TRUE(service.RefuseUnread("m", "", 20ms));
  EXPECT_EQ(Causes(), "training=0 other=0 unknown=1 ");
}

TEST_F(MissCauseTest, WhatFailedForAnotherReasonIsNotTrainingsFault) {
  toll_.TrainerRuns();
  run_ = [this](std::span<const Tensor>, std::span<const std::string>, CancelToken&) -> Result<std::vector<Tensor>> {
    clock_.Advance(30ms);
    return Fail(ErrorCode::kInternal, "broken");
  };
  EXPECT_FALSE(Send(20ms).get());
  EXPECT_EQ(Causes(), "training=0 other=1 unknown=0 ");
}

}  // namespace
}  // namespace tandem
