#include "colocation/demand_meter.h"

#include <random>

#include <gtest/gtest.h>

#include "api/base/duration.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

// A server that is looked at every 5 ms.
class DemandMeterTest : public testing::Test {
 protected:
  // Requests by chance, in groups of so many.
  void Serve(double rate, nanoseconds each, nanoseconds time, int together = 1) {
    std::exponential_distribution<double> gap(rate / together);
    double next = gap(random_);
    for (nanoseconds at{0}; at < time; at += 5ms) {
      for (; next < Seconds(at); next += gap(random_)) {
        used_ += together * each;
        answered_ += static_cast<std::uint64_t>(together);
      }
      now_ += 5ms;
      meter_.Look(now_, {.used = used_, .answered = answered_});
    }
  }

  DemandMeter meter_;
  MonotonicTime now_{1h};
  nanoseconds used_{7s};
  std::uint64_t answered_ = 1000;
  std::mt19937_64 random_{5};
};

TEST_F(DemandMeterTest, KnowsNothingAtFirst) {
  EXPECT_FALSE(meter_.demand());
  Serve(50, 5ms, 1s);
  EXPECT_FALSE(meter_.demand());
}

TEST_F(DemandMeterTest, LearnsHowMuchRequestsUseAndHowUnevenly) {
  Serve(50, 5ms, 30s);
  const RequestDemand demand = meter_.demand().value();
  EXPECT_GT(demand.cores, 0.2);
  EXPECT_LT(demand.cores, 0.45) << "what came lately counts if it is more";
  EXPECT_EQ(demand.each, 5ms);
  EXPECT_GE(demand.uneven, 5ms);
  EXPECT_LT(demand.uneven, 10ms) << "by chance alone: about what one uses";
  Serve(50, 5ms, 30s, 10);
  EXPECT_GT(meter_.demand()->uneven, 25ms) << "ten at once are one large one";
  EXPECT_EQ(meter_.demand()->each, 5ms);
}

TEST_F(DemandMeterTest, LearnsHowMuchIsUsedWhileRequestsAreUnderWay) {
  Serve(50, 5ms, 5s);
  EXPECT_EQ(meter_.demand()->busy, 0) << "nobody said when any were";
  // 4 ms of each 10 ms, on two cores for half of that time.
  for (int i = 0; i < 200; ++i) {
    meter_.Look(now_, {.used = used_, .answered = answered_, .pending = 1});
    now_ += 4ms;
    used_ += 6ms;
    ++answered_;
    meter_.Look(now_, {.used = used_, .answered = answered_, .pending = 0});
    now_ += 6ms;
  }
  EXPECT_DOUBLE_EQ(meter_.demand()->busy, 1.5);
  EXPECT_LT(meter_.demand()->cores, 0.7);
}

TEST_F(DemandMeterTest, LearnsNothingOfATimeThatBeganWithARequestUnderWayAndWithoutLooks) {
  Serve(50, 5ms, 5s);
  for (int i = 0; i < 200; ++i) {
    now_ += 5ms;
    used_ += 10ms;
    meter_.Look(now_, {.used = used_, .answered = answered_, .pending = 1});
  }
  // The machine was suspended, or the last trainer ended then and the next began now.
  now_ += 1h;
  meter_.Look(now_, {.used = used_, .answered = answered_, .pending = 0});
  EXPECT_DOUBLE_EQ(meter_.demand()->busy, 2);
}

TEST_F(DemandMeterTest, SeesAtOnceThatDemandHasGrownAndForgetsItSlowly) {
  Serve(20, 5ms, 30s);
  EXPECT_LT(meter_.demand()->cores, 0.25);
  Serve(150, 5ms, 1s);
  EXPECT_GT(meter_.demand()->cores, 0.5);
  Serve(20, 5ms, 1s);
  EXPECT_GT(meter_.demand()->cores, 0.15);
  Serve(20, 5ms, 30s);
  EXPECT_LT(meter_.demand()->cores, 0.25);
}

TEST_F(DemandMeterTest, ExpectsSomethingOfTheFirstRequest) {
  Serve(1e-9, 5ms, 10s);
  EXPECT_EQ(meter_.demand()->cores, 0);
  EXPECT_EQ(meter_.demand()->each, 20ms);
}

TEST_F(DemandMeterTest, RemembersWhatOneUsesWhenNobodyAsks) {
  Serve(50, 5ms, 10s);
  Serve(1e-9, 5ms, 60s);
  EXPECT_LT(meter_.demand()->cores, 1e-3);
  EXPECT_EQ(meter_.demand()->each, 5ms);
}

TEST_F(DemandMeterTest, OutlivesATimeWithoutLooks) {
  Serve(50, 5ms, 10s);
  now_ += 1h;
  used_ += 1s;
  Serve(50, 5ms, 10s);
  EXPECT_GT(meter_.demand()->cores, 0.15);
  EXPECT_LT(meter_.demand()->uneven, 30ms);
}

}  // namespace
}  // namespace tandem
