#include "loadgen/run_report.h"

#include <string>

#include <gtest/gtest.h>

#include "tests/loadgen/parse_json.h"

namespace tandem::loadgen {
namespace {

using namespace std::chrono_literals;

ModelReport Model(std::uint64_t ok, std::uint64_t late, std::optional<std::chrono::nanoseconds> slo = 100ms) {
  ModelReport model;
  model.model = "m";
  model.slo = slo;
  model.counts = {.ok = ok, .late = late};
  model.scheduled = ok + late;
  model.latency.Record(10ms, ok + late);
  return model;
}

RunReport Judged(std::vector<ModelReport> models) {
  LoadReport load;
  load.measured = 10s;
  load.models = std::move(models);
  auto report = JudgeRun(std::move(load), 99, 0.99);
  EXPECT_TRUE(report);
  return *std::move(report);
}

TEST(ResultOf, IsThatOfTheWorstModel) {
  EXPECT_EQ(ResultOf(Judged({Model(1000, 0)})), RunResult::kPass);
  EXPECT_EQ(ResultOf(Judged({Model(1000, 0), Model(100, 0)})), RunResult::kInconclusive);
  EXPECT_EQ(ResultOf(Judged({Model(1000, 0), Model(100, 0), Model(100, 50)})), RunResult::kFail);
  EXPECT_EQ(ResultOf(Judged({Model(1000, 0, std::nullopt)})), RunResult::kNone);
  EXPECT_EQ(ResultOf(Judged({Model(1000, 0, std::nullopt), Model(1000, 0)})), RunResult::kPass);
}

TEST(ResultOf, RejectedAndFailedRequestsAreMisses) {
  ModelReport model = Model(1000, 0);
  model.counts.rejected = 60;
  model.counts.failed = 40;
  model.scheduled += 100;
  EXPECT_EQ(ResultOf(Judged({model})), RunResult::kFail);
}

TEST(ResultOf, AGeneratorThatWasTheBottleneckMakesARunInvalid) {
  LoadReport load;
  load.models.push_back(Model(1000, 0));
  load.health.send_lag.Record(50ms, 100);
  const auto report = JudgeRun(load, 99, 0.99);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->problems.size(), 1u);
  EXPECT_EQ(ResultOf(*report), RunResult::kInvalid);
}

TEST(ResultOf, AWrongAnswerFailsARunWhateverElseItWas) {
  ModelReport wrong = Model(1000, 0);
  wrong.checked = 1000;
  wrong.wrong = 1;
  EXPECT_EQ(ResultOf(Judged({Model(1000, 0), wrong})), RunResult::kFail);
  wrong.slo.reset();
  EXPECT_EQ(ResultOf(Judged({wrong})), RunResult::kFail);
  RunReport partial = Judged({wrong});
  partial.load.partial = true;
  partial.problems.push_back("too slow");
  EXPECT_EQ(ResultOf(partial), RunResult::kFail);
}

TEST(ResultOf, APartialRunIsNoVerdict) {
  RunReport report = Judged({Model(1000, 0)});
  report.load.partial = true;
  EXPECT_EQ(ResultOf(report), RunResult::kInvalid);
}

TEST(RunReportJson, HoldsTheRunItsVerdictAndBothViews) {
  RunReport report = Judged({Model(1000, 0), Model(5, 0, std::nullopt)});
  report.date = "2026-01-02T03:04:05Z";
  report.command = "tandem loadgen --model m";
  report.url = "http://127.0.0.1:8000";
  report.server = "tandem 1";
  report.server_view.push_back({.model = "m", .requests = 1000, .queue_ms = 1, .compute_ms = 7, .total_ms = 9});
  const Json::Value json = ParseJson(RunReportJson(report));
  EXPECT_EQ(json["result"].asString(), "pass");
  EXPECT_EQ(json["date"].asString(), "2026-01-02T03:04:05Z");
  EXPECT_EQ(json["measured_s"].asDouble(), 10);
  EXPECT_EQ(json["models"][0]["verdict"]["result"].asString(), "pass");
  EXPECT_FALSE(json["models"][0]["verdict"]["text"].asString().empty());
  EXPECT_TRUE(json["models"][1]["verdict"].isNull());
  EXPECT_EQ(json["server_view"][0]["compute_ms"].asDouble(), 7);
  EXPECT_NEAR(json["server_view"][0]["client_ms"].asDouble(), 10, 0.1);
  EXPECT_TRUE(json["generator"].isMember("cpu_share"));
  EXPECT_TRUE(json["training"].isNull());
}

TEST(RunReportJson, PutsTrainingOnTheTimeAxisOfTheRun) {
  RunReport report = Judged({Model(1000, 0)});
  report.load.start = MonotonicTime(50s);
  report.training.Add(MonotonicTime(50s), {{"7", {.iterations = 5, .held_s = {}}}});
  report.training.Add(MonotonicTime(52s), {{"7", {.iterations = 9, .held_s = {{"slack", 1}}}}});
  const Json::Value json = ParseJson(RunReportJson(report));
  EXPECT_EQ(json["training"]["at_s"][0].asDouble(), 2);
  EXPECT_EQ(json["training"]["jobs"][0]["iterations_per_s"][0].asDouble(), 2);
  EXPECT_EQ(json["training"]["jobs"][0]["held_share"][0].asDouble(), 0.5);
}

TEST(RunReportJson, TheClientsViewIsThatOfAllLoadsOnAModel) {
  ModelReport fast = Model(1000, 0);
  fast.name = "first";
  ModelReport slow = Model(0, 0);
  slow.name = "second";
  slow.latency.Record(30ms, 1000);
  RunReport report = Judged({fast, slow});
  report.server_view.push_back({.model = "m", .requests = 2000});
  const Json::Value json = ParseJson(RunReportJson(report));
  EXPECT_NEAR(json["server_view"][0]["client_ms"].asDouble(), 20, 0.1);
  EXPECT_EQ(json["models"][1]["name"].asString(), "second");
  EXPECT_EQ(json["models"][1]["model"].asString(), "m");
}

TEST(RunReportHtml, IsOnePageAndNothingInItIsTakenForMarkup) {
  RunReport report = Judged({Model(1000, 0)});
  report.load.models[0].model = "</script><script>alert(1)</script>";
  report.command = "<!-- & --> \"quoted\"";
  const std::string page = RunReportHtml(report);
  EXPECT_EQ(page.find("alert(1)</script>"), std::string::npos);
  EXPECT_EQ(page.find("<!-- &"), std::string::npos);
  // Whoever opens it needs no network.
  EXPECT_EQ(page.find("src="), std::string::npos);
  EXPECT_EQ(page.find("<link"), std::string::npos);
  const std::string mark = "<script id=\"report\" type=\"application/json\">";
  const std::size_t begin = page.find(mark);
  ASSERT_NE(begin, std::string::npos);
  const std::size_t end = page.find("</script>", begin);
  const Json::Value json = ParseJson(page.substr(begin + mark.size(), end - begin - mark.size()));
  EXPECT_EQ(json["models"][0]["model"].asString(), "</script><script>alert(1)</script>");
  EXPECT_EQ(json["command"].asString(), "<!-- & --> \"quoted\"");
}

}  // namespace
}  // namespace tandem::loadgen
