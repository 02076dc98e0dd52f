#include "colocation/work_forecast.h"

#include <vector>

#include <gtest/gtest.h>

#include "tests/fakes/fake_session.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;
using testing::MakeServable;
using Before = std::vector<std::pair<const Servable*, WorkAmount>>;

class WorkForecastTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const std::int64_t size : {1, 2, 3, 4}) {
      single_->latency().Observe(size, size * 10ms, MonotonicTime(1h));
      batching_->latency().Observe(size, 10ms + size * 1ms, MonotonicTime(1h));
    }
  }
  const std::shared_ptr<Servable> single_ = MakeServable("single", {.max_batch_size = 4});
  const std::shared_ptr<Servable> batching_ = MakeServable("batching", {.max_batch_size = 4, .dynamic = true});
  const std::shared_ptr<Servable> unknown_ = MakeServable("unknown", {.max_batch_size = 4, .dynamic = true});
};

TEST_F(WorkForecastTest, WithNothingBeforeItARequestWaitsForNobody) {
  const Forecast forecast = ForecastRequest(*single_, 2, {});
  EXPECT_EQ(forecast.ahead, 0ms);
  EXPECT_EQ(forecast.run->typical, 20ms);
}

TEST_F(WorkForecastTest, RequestsThatAreNotJoinedRunOneByOne) {
  const Forecast forecast = ForecastRequest(*single_, 1, Before{{single_.get(), {.requests = 3, .elements = 6}}});
  EXPECT_EQ(forecast.ahead, 3 * 20ms);
  EXPECT_EQ(forecast.run->typical, 10ms);
}

TEST_F(WorkForecastTest, ARequestSharesTheRunOfThoseJustBeforeIt) {
  const Forecast forecast = ForecastRequest(*batching_, 1, Before{{batching_.get(), {.requests = 10, .elements = 10}}});
  EXPECT_EQ(forecast.ahead, 2 * 14ms) << "two full batches";
  EXPECT_EQ(forecast.run->typical, 13ms) << "with the two that are left";
}

TEST_F(WorkForecastTest, OtherModelsRunFirstInTheirBatches) {
  const Forecast forecast = ForecastRequest(*single_, 1, Before{{batching_.get(), {.requests = 5, .elements = 5}}});
  EXPECT_EQ(forecast.ahead, 14ms + 11ms);
}

TEST_F(WorkForecastTest, RequestsAreNotSplit) {
  // Batches of 4: requests of 3 run one by one, and the new one does not fit beside the last.
  const Forecast forecast = ForecastRequest(*batching_, 2, Before{{batching_.get(), {.requests = 3, .elements = 9}}});
  EXPECT_EQ(forecast.ahead, 3 * 13ms);
  EXPECT_EQ(forecast.run->typical, 12ms);
  const Forecast beside = ForecastRequest(*batching_, 3, Before{{batching_.get(), {.requests = 2, .elements = 2}}});
  EXPECT_EQ(beside.ahead, 12ms);
  EXPECT_EQ(beside.run->typical, 13ms);
}

TEST(UntilTurn, TheWorkerThatIsFreeFirstTakesTheNext) {
  const auto until = [](std::chrono::nanoseconds ahead, std::vector<std::chrono::nanoseconds> rests) {
    return UntilTurn(ahead, rests);
  };
  EXPECT_EQ(until(0ms, {10s}), 10s);
  EXPECT_EQ(until(5ms, {10ms}), 15ms);
  EXPECT_EQ(until(0ms, {10s, 0ms}), 0ms);
  EXPECT_EQ(until(30ms, {10s, 0ms}), 30ms) << "by the one that is free";
  EXPECT_EQ(until(30ms, {10ms, 0ms}), 20ms) << "by both";
}

TEST_F(WorkForecastTest, WhatIsNotKnownIsNotGuessed) {
  EXPECT_FALSE(ForecastRequest(*unknown_, 1, Before{{single_.get(), {.requests = 1, .elements = 1}}}).run);
  EXPECT_EQ(ForecastRequest(*single_, 1, Before{{unknown_.get(), {.requests = 9, .elements = 9}}}).ahead, 0ms);
}

}  // namespace
}  // namespace tandem
