#include "loadgen/load_report.h"

#include <string>

#include <gtest/gtest.h>

#include "tests/loadgen/parse_json.h"

namespace tandem::loadgen {
namespace {

using namespace std::chrono_literals;

TEST(LoadReportJson, HasEveryFigureUnderAStableName) {
  LoadReport report;
  report.measured = 10s;
  ModelReport model;
  model.model = "a \"model\"";
  model.slo = 20ms;
  model.counts = {.ok = 90, .late = 5, .rejected = 3, .failed = 2};
  model.failures = {{"HTTP 500", 2}};
  model.checked = 90;
  model.wrong = 1;
  model.first_wrong = "output \"y\"";
  model.scheduled = 100;
  model.goodput = 9;
  model.attainment = 0.9;
  model.latency.Record(4ms, 95);
  report.models.push_back(model);
  report.models.push_back({.model = "b"});

  const Json::Value json = ParseJson(LoadReportJson(report));
  EXPECT_EQ(json["measured_s"].asDouble(), 10);
  EXPECT_FALSE(json["partial"].asBool());
  const Json::Value& first = json["models"][0];
  EXPECT_EQ(first["model"].asString(), "a \"model\"");
  EXPECT_EQ(first["slo_ms"].asDouble(), 20);
  EXPECT_EQ(first["ok"].asInt() + first["late"].asInt() + first["rejected"].asInt() + first["failed"].asInt(), 100);
  EXPECT_EQ(first["failures"]["HTTP 500"].asInt(), 2);
  EXPECT_EQ(first["checked"].asInt(), 90);
  EXPECT_EQ(first["wrong_answers"].asInt(), 1);
  EXPECT_EQ(first["first_wrong_answer"].asString(), "output \"y\"");
  EXPECT_EQ(first["attainment"].asDouble(), 0.9);
  EXPECT_NEAR(first["latency"]["p99_ms"].asDouble(), 4, 0.004);
  EXPECT_TRUE(json["models"][1]["slo_ms"].isNull());
  EXPECT_TRUE(json["generator"]["send_lag"].isMember("p99_ms"));
}

TEST(LoadReportJson, ShowsTheRunAlongItsTimeAndTheDistribution) {
  ModelReport model;
  for (int i = 1; i <= 100; ++i) {
    model.latency.Record(i * 1ms);
    model.timeline.Record(i * 10ms, i > 95 ? Outcome::kLate : Outcome::kOk, i * 1ms);
  }
  LoadReport report;
  report.models.push_back(std::move(model));
  const Json::Value json = ParseJson(LoadReportJson(report));
  const Json::Value& timeline = json["models"][0]["timeline"];
  EXPECT_EQ(timeline["width_s"].asDouble(), 0.1);
  for (const char* name : {"ok", "late", "rejected", "failed", "p50_ms", "p99_ms", "max_ms"}) {
    EXPECT_EQ(timeline[name].size(), 11u) << name;
  }
  EXPECT_EQ(timeline["ok"][0].asInt(), 9);
  EXPECT_EQ(timeline["late"][10].asInt(), 1);
  const Json::Value& distribution = json["models"][0]["distribution"];
  double last = 0;
  for (const Json::Value& point : distribution) {
    EXPECT_GE(point[0].asDouble(), last);
    last = point[0].asDouble();
  }
  EXPECT_EQ(distribution[distribution.size() - 1][0].asDouble(), 100);
  EXPECT_EQ(distribution[distribution.size() - 1][1].asDouble(), 100);
}

TEST(GeneratorProblems, NamesWhatMakesARunInvalid) {
  GeneratorHealth health;
  health.send_lag.Record(500us, 1000);
  health.cpu_share = 0.5;
  EXPECT_TRUE(GeneratorProblems(health, 10ms).empty());
  health.send_lag.Record(3ms, 20);
  ASSERT_EQ(GeneratorProblems(health, 10ms).size(), 1u);
  EXPECT_NE(GeneratorProblems(health, 10ms)[0].find("3.00 ms"), std::string::npos);
  // A twentieth of a generous SLO does not decide about it.
  EXPECT_TRUE(GeneratorProblems(health, 100ms).empty());
  EXPECT_EQ(GeneratorProblems(health, std::nullopt).size(), 1u);
  health.cpu_share = 0.97;
  EXPECT_EQ(GeneratorProblems(health, 10ms).size(), 2u);
}

TEST(OutcomeOf, AnAnswerIsLateOnlyBeyondTheSlo) {
  const RequestRecord answered{.status = 200};
  EXPECT_EQ(OutcomeOf(answered, 20ms, 20ms), Outcome::kOk);
  EXPECT_EQ(OutcomeOf(answered, 21ms, 20ms), Outcome::kLate);
  EXPECT_EQ(OutcomeOf(answered, 1h, std::nullopt), Outcome::kOk);
}

}  // namespace
}  // namespace tandem::loadgen
