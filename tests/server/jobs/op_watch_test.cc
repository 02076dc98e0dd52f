#include "server/jobs/op_watch.h"

#include <gtest/gtest.h>

#include "api/wire/json_document.h"
#include "colocation/board_gate.h"

namespace tandem::jobs {
namespace {

using namespace std::chrono_literals;

// A trainer of two operators, 0.1 and 5 ms long.
class OpWatchTest : public testing::Test {
 protected:
  OpWatchTest() {
    const std::vector<OpInfo> ops = {{.kind = "Relu", .name = "small"}, {.kind = "Conv", .name = "large"}};
    gate_.Announce(ops);
  }
  void Train(int steps) {
    for (int i = 0; i < steps; ++i) {
      gate_.Begin(0);
      clock_.Advance(100us);
      gate_.Begin(1);
      clock_.Advance(5ms);
      gate_.End();
    }
  }
  std::vector<OpWatch::Change> Look(OpWatch& watch, std::span<const RunSample> runs = {}, bool was_stopped = false) {
    return watch.Look(*board_, runs, was_stopped, clock_.Now());
  }
  // One run in the middle of each operator since `start`; those beside the large one take `times` as long.
  static std::vector<RunSample> Runs(MonotonicTime start, int steps, double times) {
    std::vector<RunSample> runs;
    for (int i = 0; i < steps; ++i) {
      const MonotonicTime step = start + i * 5100us;
      runs.push_back({.model = "m", .began = step + 1us, .ended = step + 90us, .ratio = 1});
      runs.push_back({.model = "m", .began = step + 1ms, .ended = step + 3ms, .ratio = times});
    }
    return runs;
  }

  const std::unique_ptr<TrainerBoard> board_ = TrainerBoard::Create().value();
  FakeClock clock_;
  BoardGate gate_{*board_, clock_, [](int, int) {}};
};

TEST_F(OpWatchTest, GatesWhatIsHeavyAsThePolicyWants) {
  OpWatch all(GatedOps::kHeavy);
  OpWatch measured(GatedOps::kHeavyAsMeasured);
  OpWatch none(GatedOps::kNone);
  Train(20);
  for (OpWatch* watch : {&all, &measured, &none}) EXPECT_TRUE(Look(*watch).empty()) << "a first look is no change";
  EXPECT_EQ(all.Gated(), std::set<std::size_t>{1});
  EXPECT_TRUE(measured.Gated().empty()) << "nobody has seen it slow a request";
  EXPECT_TRUE(none.Gated().empty());
  EXPECT_EQ(all.ops()[1].verdict.reason, "takes 5.00 ms");
}

TEST_F(OpWatchTest, TellsWhatSlowsAModelTheWorstFirst) {
  OpWatch watch(GatedOps::kHeavyAsMeasured);
  const MonotonicTime start = clock_.Now();
  Train(200);
  static_cast<void>(Look(watch, Runs(start, 200, 1.5)));
  const std::vector<Json::Value> beside = watch.Beside("m");
  ASSERT_EQ(beside.size(), 2U);
  EXPECT_EQ(beside[0]["kind"], "Conv");
  EXPECT_EQ(beside[0]["name"], "large");
  EXPECT_EQ(beside[0]["class"], "heavy");
  EXPECT_NEAR(beside[0]["ratio"].asDouble(), 1.5, 0.01);
  EXPECT_LT(beside[1]["ratio"].asDouble(), 1);
  EXPECT_TRUE(watch.Beside("other").empty());
}

TEST_F(OpWatchTest, TellsWhenAnOperatorIsTakenForSomethingElseAndWhy) {
  OpWatch watch(GatedOps::kHeavyAsMeasured);
  Train(1);
  EXPECT_TRUE(Look(watch).empty());
  EXPECT_EQ(watch.ops()[1].verdict.op_class, OpClass::kLight) << "it has run once, and nothing is known of its work";
  MonotonicTime start = clock_.Now();
  Train(100);
  const auto harmless = Look(watch, Runs(start, 100, 1));
  EXPECT_TRUE(harmless.empty());
  start = clock_.Now();
  Train(400);
  const auto changes = Look(watch, Runs(start, 400, 1.5));
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].op.name, "large");
  EXPECT_EQ(changes[0].now.op_class, OpClass::kHeavy);
  EXPECT_TRUE(changes[0].now.measured);
  EXPECT_EQ(watch.Gated(), std::set<std::size_t>{1});
  const Json::Value json = ChangesToJson(changes);
  EXPECT_EQ(json["count"], 1U);
  EXPECT_EQ(json["changes"][0]["class"], "heavy");
  EXPECT_NE(json["changes"][0]["why"].asString().find("requests of m beside it take 1."), std::string::npos)
      << JsonLine(json);
}

TEST_F(OpWatchTest, AnOperatorThatStoodStillWasBesideNothing) {
  OpWatch watch(GatedOps::kHeavyAsMeasured);
  const MonotonicTime start = clock_.Now();
  Train(400);
  EXPECT_TRUE(Look(watch, Runs(start, 400, 1.5), true).empty());
  EXPECT_FALSE(watch.ops()[1].worst);
}

TEST_F(OpWatchTest, RunsBesideAnOperatorThatHasNotEndedCountLater) {
  OpWatch watch(GatedOps::kHeavyAsMeasured);
  for (int i = 0; i < 100; ++i) {
    const MonotonicTime start = clock_.Now();
    gate_.Begin(0);
    clock_.Advance(100us);
    gate_.Begin(1);
    clock_.Advance(4ms);
    (void)Look(watch, Runs(start, 1, 1.5));  // In the middle of it.
    clock_.Advance(1ms);
    gate_.End();
  }
  (void)Look(watch);
  ASSERT_TRUE(watch.ops()[1].worst);
  EXPECT_NEAR(watch.ops()[1].worst->ratio, 1.5, 0.01);
}

TEST_F(OpWatchTest, ListsOperatorsByTheirTime) {
  OpWatch watch(GatedOps::kNone);
  Train(10);
  (void)Look(watch);
  const Json::Value json = ProfileToJson(watch.ops());
  EXPECT_NEAR(json["total_ms"].asDouble(), 51, 1e-9);
  ASSERT_EQ(json["ops"].size(), 2U);
  EXPECT_EQ(json["ops"][0]["kind"], "Conv");
  EXPECT_EQ(json["ops"][0]["class"], "heavy");
  EXPECT_EQ(json["ops"][0]["count"], 10U);
  EXPECT_NEAR(json["ops"][0]["share"].asDouble(), 50.0 / 51, 1e-9);
  EXPECT_TRUE(json["ops"][0]["interference"].isNull());
}

TEST_F(OpWatchTest, WhoeverAsksBetweenTwoLooksIsToldWhatIsCountedNow) {
  OpWatch watch(GatedOps::kHeavy);
  EXPECT_TRUE(watch.OpsNow(*board_).empty()) << "nobody has looked";
  Train(10);
  (void)Look(watch);
  Train(5);
  const std::vector<WatchedOp> now = watch.OpsNow(*board_);
  ASSERT_EQ(now.size(), 2U);
  EXPECT_EQ(now[1].totals.count, 15U);
  EXPECT_EQ(now[1].verdict.op_class, OpClass::kHeavy);
  EXPECT_EQ(watch.ops()[1].totals.count, 10U) << "classes are found at looks alone";
}

TEST_F(OpWatchTest, AnEmptyBoardHasAnEmptyProfile) {
  OpWatch watch(GatedOps::kHeavy);
  EXPECT_TRUE(Look(watch).empty());
  EXPECT_TRUE(ProfileToJson(watch.ops())["ops"].empty()) << "none has run";
}

}  // namespace
}  // namespace tandem::jobs
