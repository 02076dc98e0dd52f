#include "server/jobs/op_watch.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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
  static std::vector<RunSample> Runs(MonotonicTime start, int steps, double times, const std::string& model = "m") {
    std::vector<RunSample> runs;
    for (int i = 0; i < steps; ++i) {
      const MonotonicTime step = start + i * 5100us;
      runs.push_back({.model = model, .began = step + 1us, .ended = step + 90us, .ratio = 1});
      runs.push_back({.model = model, .began = step + 1ms, .ended = step + 3ms, .ratio = times});
    }
    return runs;
  }
  // So many steps, beside runs of models that take so many times as long beside the large operator.
  std::vector<OpWatch::Change> TrainBeside(OpWatch& watch, int steps, const std::map<std::string, double>& models) {
    const MonotonicTime start = clock_.Now();
    Train(steps);
    std::vector<RunSample> runs;
    for (const auto& [model, times] : models) {
      for (RunSample& run : Runs(start, steps, times, model)) runs.push_back(std::move(run));
    }
    return Look(watch, runs);
  }
  static std::map<std::string, OpClass> Classes(const WatchedOp& op) {
    std::map<std::string, OpClass> classes;
    for (const OpPairing& pairing : op.pairings) {
      if (pairing.op_class) classes[pairing.seen.model] = *pairing.op_class;
    }
    return classes;
  }

  const std::unique_ptr<TrainerBoard> board_ = TrainerBoard::Create().value();
  FakeClock clock_;
  BoardGate gate_{*board_, clock_, [](int, int) {}};
  ModelBits models_;
};

TEST_F(OpWatchTest, GatesWhatIsHeavyAsThePolicyWants) {
  OpWatch all(GatedOps::kHeavy);
  OpWatch measured(GatedOps::kHeavyAsMeasured);
  OpWatch none(GatedOps::kNone);
  Train(20);
  for (OpWatch* watch : {&all, &measured, &none}) EXPECT_TRUE(Look(*watch).empty()) << "a first look is no change";
  EXPECT_EQ(all.Gated(models_), (GatedPlaces{{1, kEveryModel}}));
  EXPECT_TRUE(measured.Gated(models_).empty()) << "nobody has seen it slow a request";
  EXPECT_TRUE(none.Gated(models_).empty());
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
  ASSERT_EQ(changes.size(), 2U) << "beside the model, and altogether";
  EXPECT_EQ(changes[1].op.name, "large");
  EXPECT_EQ(changes[1].model, "");
  EXPECT_EQ(changes[1].now.op_class, OpClass::kHeavy);
  EXPECT_TRUE(changes[1].now.measured);
  EXPECT_EQ(watch.Gated(models_), (GatedPlaces{{1, SetOf(models_.BitOf("m"))}}));
  const Json::Value json = ChangesToJson(changes);
  EXPECT_EQ(json["count"], 2U);
  for (const Json::Value& change : json["changes"]) {
    EXPECT_EQ(change["class"], "heavy");
    EXPECT_NE(change["why"].asString().find("requests of m beside it take 1."), std::string::npos) << JsonLine(json);
    EXPECT_EQ(change["before"], "requests of m beside it take no longer (100 runs)");
  }
  EXPECT_EQ(json["changes"][0]["model"], "m");
  EXPECT_GT(json["changes"][0]["ratio"].asDouble(), 1.1);
  EXPECT_FALSE(json["changes"][1].isMember("model"));
}

TEST_F(OpWatchTest, AnOperatorHasAClassBesideEachModel) {
  OpWatch watch(GatedOps::kHeavyAsMeasured);
  Train(10);
  (void)Look(watch);
  const auto changes = TrainBeside(watch, 100, {{"hardy", 1}, {"slowed", 1.5}});
  ASSERT_EQ(changes.size(), 1U) << "it was heavy altogether all along, by its time";
  EXPECT_EQ(changes[0].op.name, "large");
  EXPECT_EQ(changes[0].model, "slowed");
  EXPECT_EQ(changes[0].now.op_class, OpClass::kHeavy);
  EXPECT_EQ(changes[0].before.reason, "too little is known of requests of slowed beside it");
  EXPECT_NEAR(changes[0].seen->ratio, 1.5, 0.01);
  EXPECT_EQ(changes[0].seen->runs, 100);
  EXPECT_EQ(Classes(watch.ops()[1]),
            (std::map<std::string, OpClass>{{"hardy", OpClass::kLight}, {"slowed", OpClass::kHeavy}}));
  EXPECT_EQ(watch.ops()[1].verdict.op_class, OpClass::kHeavy) << "as beside the model that it slows most";
  EXPECT_EQ(watch.Gated(models_), (GatedPlaces{{1, SetOf(models_.BitOf("slowed"))}})) << "it waits for no other";
  EXPECT_EQ(watch.Beside("slowed")[0]["class"], "heavy");
  EXPECT_EQ(watch.Beside("hardy")[1]["name"], "large");
  EXPECT_EQ(watch.Beside("hardy")[1]["class"], "light");
  EXPECT_EQ(watch.Beside("hardy")[1]["why"], "requests of hardy beside it take no longer (100 runs)");
  const Json::Value profile = ProfileToJson(watch.ops());
  const Json::Value& interference = profile["ops"][0]["interference"];
  ASSERT_EQ(interference.size(), 2U);
  EXPECT_EQ(interference[0]["model"], "slowed");
  EXPECT_EQ(interference[0]["class"], "heavy");
  EXPECT_EQ(interference[0]["why"], profile["ops"][0]["why"]);
  EXPECT_EQ(interference[1]["model"], "hardy");
  EXPECT_EQ(interference[1]["class"], "light");
}

TEST_F(OpWatchTest, EachPairingGoesBackByItself) {
  OpWatch watch(GatedOps::kHeavyAsMeasured);
  ASSERT_EQ(TrainBeside(watch, 200, {{"a", 1.5}}).size(), 1U);
  clock_.Advance(5 * InterferenceMeter::kHalfLife);
  EXPECT_TRUE(TrainBeside(watch, 400, {{"a", 1.07}, {"b", 1.07}}).empty()) << "what was heavy stays so";
  EXPECT_EQ(Classes(watch.ops()[1]), (std::map<std::string, OpClass>{{"a", OpClass::kHeavy}, {"b", OpClass::kLight}}));
  clock_.Advance(10 * InterferenceMeter::kHalfLife);
  const auto changes = TrainBeside(watch, 400, {{"a", 1}, {"b", 1.5}});
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_EQ(changes[0].model, "a");
  EXPECT_EQ(changes[0].now.op_class, OpClass::kLight);
  EXPECT_EQ(changes[1].model, "b");
  EXPECT_EQ(changes[1].now.op_class, OpClass::kHeavy);
  (void)TrainBeside(watch, 400, {{"a", 1.5}, {"b", 1.5}});
  EXPECT_EQ(watch.Gated(models_), (GatedPlaces{{1, SetOf(models_.BitOf("a")) | SetOf(models_.BitOf("b"))}}));
}

TEST_F(OpWatchTest, TellsWhenTooLittleIsKnownOfAPairingAnyMore) {
  OpWatch watch(GatedOps::kHeavyAsMeasured);
  (void)TrainBeside(watch, 200, {{"gone", 1.5}});
  ASSERT_EQ(watch.Gated(models_).size(), 1U);
  clock_.Advance(20 * InterferenceMeter::kHalfLife);
  const auto changes = Look(watch);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].model, "gone");
  EXPECT_EQ(changes[0].now.op_class, OpClass::kLight);
  EXPECT_EQ(changes[0].now.reason, "too little is known of requests of gone beside it");
  EXPECT_FALSE(ChangesToJson(changes)["changes"][0].isMember("ratio"));
  EXPECT_TRUE(watch.ops()[1].pairings.empty()) << "nothing is kept of it";
  EXPECT_TRUE(watch.Gated(models_).empty());
}

TEST_F(OpWatchTest, AProfileTellsOfAFewModelsTheWorstFirst) {
  OpWatch watch(GatedOps::kHeavyAsMeasured);
  (void)TrainBeside(watch, 100, {{"a", 1.2}, {"b", 1.6}, {"c", 1}, {"d", 1.4}, {"e", 1.3}, {"f", 1.1}});
  const Json::Value profile = ProfileToJson(watch.ops());
  const Json::Value& told = profile["ops"][0]["interference"];
  ASSERT_EQ(told.size(), 4U);
  std::string models;
  for (const Json::Value& pairing : told) models += pairing["model"].asString();
  EXPECT_EQ(models, "bdea");
}

TEST_F(OpWatchTest, OfManyChangesThoseBesideAModelAreTold) {
  std::vector<OpWatch::Change> changes(30, {.op = {.kind = "Relu", .name = "r"}});
  changes.push_back({.op = {.kind = "Conv", .name = "c"}, .model = "m"});
  const Json::Value json = ChangesToJson(changes);
  EXPECT_EQ(json["count"], 31U);
  EXPECT_EQ(json["changes"].size(), 16U);
  EXPECT_EQ(json["changes"][0]["name"], "c");
}

TEST_F(OpWatchTest, AnOperatorThatStoodStillWasBesideNothing) {
  OpWatch watch(GatedOps::kHeavyAsMeasured);
  const MonotonicTime start = clock_.Now();
  Train(400);
  EXPECT_TRUE(Look(watch, Runs(start, 400, 1.5), true).empty());
  EXPECT_TRUE(watch.ops()[1].pairings.empty());
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
  ASSERT_EQ(watch.ops()[1].pairings.size(), 1U);
  EXPECT_NEAR(watch.ops()[1].pairings[0].seen.ratio, 1.5, 0.01);
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
  EXPECT_TRUE(json["ops"][0]["interference"].isArray());
  EXPECT_TRUE(json["ops"][0]["interference"].empty());
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
