// Clocks that jump, a machine that stood still, and models that change their ways.

#include <future>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fakes/jumping_clock.h"
#include "tests/server/infer/service_fixture.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// One model whose runs take `took_`, before which `happens_` happens.
class TimeFaultsTest : public ::testing::Test {
 protected:
  std::future<Result<InferResponse>> Send(std::optional<std::chrono::microseconds> slo) {
    InferRequest request;
    request.model = "m";
    request.inputs = {
        {.tensor = testing::MakeTensor("x", DataType::kFp32, {1, 2}, std::vector<float>{1, 2}), .shared = {}}};
    request.slo = slo;
    request.arrival = clock_.Now();
    request.cancel = std::make_shared<CancelToken>();
    auto answer = std::make_shared<std::promise<Result<InferResponse>>>();
    auto future = answer->get_future();
    service_.Infer(std::move(request),
                   [answer](Result<InferResponse> response) { answer->set_value(std::move(response)); });
    return future;
  }
  // In time.
  bool Met(std::chrono::microseconds slo) {
    const MonotonicTime arrival = clock_.Now();
    return Send(slo).get().has_value() && clock_.Now() - arrival <= slo;
  }

  JumpingClock clock_;
  std::chrono::nanoseconds took_ = 10ms;
  std::function<void()> happens_;
  std::shared_ptr<Servable> servable_ =
      testing::MakeServable("m", {.max_batch_size = 4},
                            [this](std::span<const Tensor> inputs, std::span<const std::string> outputs,
                                   CancelToken&) -> Result<std::vector<Tensor>> {
                              if (auto happens = std::exchange(happens_, nullptr)) happens();
                              clock_.Advance(took_);
                              Tensor output = inputs[0];
                              output.name = outputs[0];
                              return std::vector<Tensor>{output};
                            });
  DeadlineAdmission admission_;
  prometheus::Registry registry_;
  RequestMetrics metrics_{registry_};
  SharedRegions regions_;
  Dispatcher dispatcher_{clock_, admission_, {}};
  InferenceService service_{
      {clock_, dispatcher_, regions_, metrics_},
      [this](std::string_view, std::string_view) -> Result<std::shared_ptr<Servable>> { return servable_; },
      std::nullopt};
};

TEST_F(TimeFaultsTest, ATimeOfDayThatIsSetChangesNoDeadline) {
  for (const auto jump : {24h * 365, -2 * 24h * 365}) {
    clock_.Advance(2s);  // What is known is old then, and nobody is refused for it.
    happens_ = [this, jump] { clock_.JumpWall(jump); };
    EXPECT_TRUE(Met(11ms));
    EXPECT_FALSE(happens_);
    clock_.Advance(2s);
    happens_ = [this, jump] { clock_.JumpWall(jump); };
    EXPECT_FALSE(Met(9ms));
    EXPECT_FALSE(happens_);
  }
}

TEST_F(TimeFaultsTest, OfAMachineThatStoodStillTheNextRequestIsServed) {
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(Met(20ms));
  std::promise<void> running;
  std::promise<void> go_on;
  happens_ = [&] {
    running.set_value();
    go_on.get_future().wait();
  };
  auto first = Send(20ms);
  running.get_future().wait();
  auto second = Send(40ms);
  clock_.Advance(24h);
  const auto expired = second.get();
  ASSERT_FALSE(expired) << "nobody waits for it any more";
  EXPECT_EQ(expired.error().code, ErrorCode::kDeadlineExceeded);
  go_on.set_value();
  EXPECT_TRUE(first.get()) << "late, but it was computed";
  for (int i = 0; i < 30; ++i) EXPECT_TRUE(Met(20ms)) << "a run of a day says nothing of the next: " << i;
}

TEST_F(TimeFaultsTest, AModelThatSlowsDownIsRefusedSoonAndServedAgainOnceItIsFast) {
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Met(30ms));
  took_ = 40ms;
  int late = 0;
  while (late < 30 && Send(30ms).get()) ++late;
  EXPECT_LT(late, 30) << "what cannot be in time is not computed for ever";
  // With room for it nobody is refused.
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(Met(200ms)) << i;
  took_ = 10ms;
  int met = 0;
  for (int i = 0; i < 100; ++i) {
    clock_.Advance(100ms);
    met = Met(30ms) ? met + 1 : 0;
  }
  EXPECT_GT(met, 50) << "the last ones, one after another";
}

TEST_F(TimeFaultsTest, AModelThatTakesTwiceAsLongIsPredictedAfterAFewRuns) {
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(Met(1s));
  took_ = 20ms;
  for (int i = 0; i < 30; ++i) EXPECT_TRUE(Met(1s)) << "and refuses nobody who has time";
  EXPECT_EQ(servable_->latency().Predict(1)->typical, 20ms);
}

TEST_F(TimeFaultsTest, SlosThatNobodyKeepsOrMissesAreAnswered) {
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(Met(20ms));
  const auto shortest = Send(1us).get();
  ASSERT_FALSE(shortest);
  EXPECT_THAT(shortest.error().message, HasSubstr("the deadline cannot be met"));
  EXPECT_TRUE(Met(24h));
  EXPECT_TRUE(Met(24h * 365)) << "as a time-out may be";
}

}  // namespace
}  // namespace tandem
