#include "server/cli/demo_verdict.h"

#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/wire/json_document.h"
#include "server/cli/demo_picture.h"

namespace tandem::cli {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

loadgen::LoadReport Report(std::uint64_t ok, std::chrono::nanoseconds latency) {
  loadgen::ModelReport model;
  model.model = "digits";
  model.slo = 100ms;
  model.counts.ok = ok;
  model.scheduled = ok;
  model.latency.Record(latency, ok);
  loadgen::LoadReport report;
  report.models.push_back(std::move(model));
  return report;
}

// An answer to one picture, which shows a 1.
std::string Answer(int version, std::size_t digit) {
  std::vector<float> scores(10, 0.0F);
  scores[digit] = 1;
  return R"({"model_name":"digits","model_version":")" + std::to_string(version) +
         R"(","outputs":[{"name":"scores","datatype":"FP32","shape":[1,10],"parameters":{"binary_data_size":40}}]})" +
         std::string(reinterpret_cast<const char*>(scores.data()), 40);
}

DemoOutcome Trained() {
  DemoOutcome outcome;
  outcome.alone = Report(10, 5ms);
  outcome.beside = Report(20, 7ms);
  outcome.after = Report(5, 5ms);
  outcome.training_wanted = true;
  outcome.training.emplace();
  outcome.training->job.state = "succeeded";
  outcome.training->job.step = 300;
  outcome.training->job.published_version = "2";
  outcome.training->steps_per_second = 50;
  outcome.training->decided = true;
  outcome.served.emplace(std::vector<std::int64_t>{1});
  EXPECT_TRUE(outcome.served->Take(Answer(1, 0)));
  EXPECT_TRUE(outcome.served->Take(Answer(2, 1)));
  return outcome;
}

TEST(DemoVerdict, SumsUpATrainingThatWasPublished) {
  const DemoVerdict verdict = JudgeDemo(Trained());
  EXPECT_TRUE(verdict.passed);
  EXPECT_EQ(verdict.text,
            "Trained 300 steps beside the load, 50.0 a second; published as version 2 of digits.\n"
            "digits: 1 answer by version 1, 0.0 % right; 1 by version 2, 100.0 % right.\n"
            "Accuracy of what is served, on pictures that no job has seen: 0.0 % → 100.0 %.\n"
            "100.00 % of 35 requests answered within their SLO, 0 failed.\n");
}

TEST(DemoVerdict, ShowsLatencyAloneAndBesideTraining) {
  const std::string table = DemoTable(Trained());
  EXPECT_THAT(table, HasSubstr("p50 ms alone  training  p99 ms alone  training"));
  EXPECT_THAT(table, ::testing::ContainsRegex("digits +35 +5\\.0 +7\\.0 +5\\.0 +7\\.0 +100 +100\\.00 % +0 +0 +0"));
}

TEST(DemoVerdict, ComparesWithTrainingThatNobodyManages) {
  DemoOutcome outcome = Trained();
  EXPECT_EQ(DemoPicture(outcome), "");
  outcome.unmanaged = Report(7, 40ms);
  outcome.unmanaged->models[0].counts.failed = 1;
  outcome.unmanaged_rate = 55;
  EXPECT_EQ(DemoPicture(outcome),
            "p99 of digits\n"
            "  alone      ██████ 5.0 ms\n"
            "  unmanaged  ████████████████████████████████████████████████ 40.0 ms, 55.0 training steps a second\n"
            "  tandem     ████████▍ 7.0 ms, 50.0 training steps a second\n");
  const std::string table = DemoTable(outcome);
  EXPECT_THAT(table, HasSubstr("p50 ms alone  unmanaged  training  p99 ms alone  unmanaged  training"));
  EXPECT_THAT(table, ::testing::ContainsRegex("digits +35 +5\\.0 +40\\.0 +7\\.0 +5\\.0 +40\\.0 +7\\.0 +100"));
  EXPECT_TRUE(JudgeDemo(outcome).passed) << "what is there for comparison does not count";
  const auto json = ParseStrictJson(DemoJson(outcome)).value();
  EXPECT_EQ(json["unmanaged_steps_per_second"].asDouble(), 55);
  EXPECT_TRUE(json["unmanaged"].isObject());
}

TEST(DemoVerdict, AFailedRequestFailsTheDemoWheneverItWas) {
  for (const auto part : {&DemoOutcome::building, &DemoOutcome::alone, &DemoOutcome::beside, &DemoOutcome::after}) {
    DemoOutcome outcome = Trained();
    outcome.*part = Report(1, 1ms);
    EXPECT_TRUE(JudgeDemo(outcome).passed);
    (outcome.*part)->models[0].counts.failed = 1;
    EXPECT_FALSE(JudgeDemo(outcome).passed);
    EXPECT_THAT(JudgeDemo(outcome).text, HasSubstr("1 failed."));
  }
}

TEST(DemoVerdict, ATrainingThatCameToNothingFailsTheDemoAndSaysWhy) {
  DemoOutcome none = Trained();
  none.not_trained = "the trainer could not be built: no space";
  none.training.reset();
  none.beside.reset();
  none.after.reset();
  none.served.emplace(std::vector<std::int64_t>{1});
  EXPECT_FALSE(JudgeDemo(none).passed);
  EXPECT_THAT(JudgeDemo(none).text, HasSubstr("Not trained: the trainer could not be built: no space\n"));
  EXPECT_THAT(DemoTable(none), Not(HasSubstr("training")));

  DemoOutcome failed = Trained();
  failed.training->job.published_version.clear();
  failed.training->problem = "job 1 failed: it was killed";
  EXPECT_FALSE(JudgeDemo(failed).passed);
  EXPECT_THAT(JudgeDemo(failed).text, HasSubstr("No new version: job 1 failed: it was killed\n"));

  DemoOutcome silent = Trained();
  silent.training->job.published_version = "3";
  EXPECT_FALSE(JudgeDemo(silent).passed);
  EXPECT_THAT(JudgeDemo(silent).text, HasSubstr("Version 3 has answered no request.\n"));
}

TEST(DemoVerdict, ANewVersionThatIsNoBetterFailsTheDemo) {
  DemoOutcome outcome = Trained();
  outcome.served.emplace(std::vector<std::int64_t>{1});
  ASSERT_TRUE(outcome.served->Take(Answer(1, 1)));
  ASSERT_TRUE(outcome.served->Take(Answer(2, 0)));
  EXPECT_FALSE(JudgeDemo(outcome).passed);
  EXPECT_THAT(JudgeDemo(outcome).text, HasSubstr("100.0 % → 0.0 %.\nThe new version is no better.\n"));
}

TEST(DemoVerdict, WithoutTrainingTheLoadAloneCounts) {
  DemoOutcome outcome;
  outcome.alone = Report(10, 5ms);
  EXPECT_TRUE(JudgeDemo(outcome).passed);
  EXPECT_EQ(JudgeDemo(outcome).text, "100.00 % of 10 requests answered within their SLO, 0 failed.\n");
  EXPECT_THAT(DemoTable(outcome), HasSubstr("model   answered  req/s  p50 ms  p99 ms  SLO ms"));
  const auto json = ParseStrictJson(DemoJson(outcome));
  ASSERT_TRUE(json) << json.error().message;
  EXPECT_EQ((*json)["models"][0]["model"].asString(), "digits");
  outcome.alone = Report(0, 0ms);
  EXPECT_FALSE(JudgeDemo(outcome).passed);
}

TEST(DemoVerdict, AnInterruptedDemoSaysSo) {
  DemoOutcome outcome = Trained();
  outcome.interrupted = true;
  EXPECT_FALSE(JudgeDemo(outcome).passed);
  EXPECT_THAT(JudgeDemo(outcome).text, HasSubstr("Interrupted. 100.00 %"));
}

TEST(DemoVerdict, TellsProgramsTheSame) {
  const auto json = ParseStrictJson(DemoJson(Trained()));
  ASSERT_TRUE(json) << json.error().message;
  EXPECT_EQ((*json)["beside_training"]["models"][0]["model"].asString(), "digits");
  const Json::Value& training = (*json)["training"];
  EXPECT_EQ(training["published_version"].asString(), "2");
  EXPECT_EQ(training["steps"].asInt(), 300);
  EXPECT_EQ(training["accuracy_before"].asDouble(), 0);
  EXPECT_EQ(training["accuracy_after"].asDouble(), 1);
  EXPECT_EQ(training["versions"]["2"]["answers"].asInt(), 1);
}

}  // namespace
}  // namespace tandem::cli
