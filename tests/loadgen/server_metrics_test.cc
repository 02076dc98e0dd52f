#include "loadgen/server_metrics.h"

#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "api/base/format.h"

namespace tandem::loadgen {
namespace {

constexpr std::string_view kBefore = R"(# HELP nv_inference_request_success Number of requests
# TYPE nv_inference_request_success counter
nv_inference_request_success{model="a",version="1"} 10
nv_inference_request_success{model="a",version="2"} 5
nv_inference_request_duration_us{model="a",version="1"} 1000
nv_inference_queue_duration_us{model="a",version="1"} 100
)";

constexpr std::string_view kAfter =
    "nv_inference_request_success{version=\"1\" , model=\"a\",} 30 1700000000\r\n"
    "nv_inference_request_success{model=\"a\",version=\"2\"} 5\n"
    "nv_inference_request_duration_us{model=\"a\"} 61000\n"
    "nv_inference_queue_duration_us{model=\"a\"} 10100\n"
    "nv_inference_compute_input_duration_us{model=\"a\"} 1000\n"
    "nv_inference_compute_infer_duration_us{model=\"a\"} 4e4\n"
    "nv_inference_compute_output_duration_us{model=\"a\"} 2000\n"
    "tandem_request_latency_seconds_bucket{le=\"+Inf\"} +Inf\n"
    "process_open_fds 12";

TEST(ServerMetrics, MeansAreThoseOfTheTimeBetweenTwoReadings) {
  const auto before = ParseServerMetrics(kBefore);
  const auto after = ParseServerMetrics(kAfter);
  ASSERT_TRUE(before && after);
  EXPECT_EQ(before->models.at("a").requests, 15);
  const auto views = Between(*before, *after);
  ASSERT_EQ(views.size(), 1u);
  EXPECT_EQ(views[0].model, "a");
  EXPECT_EQ(views[0].requests, 20u);
  EXPECT_DOUBLE_EQ(views[0].queue_ms, 0.5);
  EXPECT_DOUBLE_EQ(views[0].compute_ms, 2.15);
  EXPECT_DOUBLE_EQ(views[0].total_ms, 3);
}

TEST(ServerMetrics, AServerThatWasStartedAgainHasNoView) {
  EXPECT_TRUE(Between(*ParseServerMetrics(kAfter), *ParseServerMetrics(kBefore)).empty());
  EXPECT_TRUE(Between({}, {}).empty());
  EXPECT_EQ(Between({}, *ParseServerMetrics(kAfter)).size(), 1u);
}

TEST(ServerMetrics, ReadsEscapedNames) {
  const auto metrics = ParseServerMetrics(R"(nv_inference_request_success{model="a\"b\\c\nd"} 1)");
  ASSERT_TRUE(metrics);
  EXPECT_TRUE(metrics->models.contains("a\"b\\c\nd"));
}

TEST(ServerMetrics, OtherServersHaveOtherMetrics) {
  const auto metrics = ParseServerMetrics("http_requests_total{code=\"200\"} 5\n\n  \n# anything\n");
  ASSERT_TRUE(metrics);
  EXPECT_TRUE(metrics->models.empty());
  EXPECT_TRUE(metrics->jobs.empty());
  EXPECT_FALSE(metrics->ours);
}

TEST(ServerMetrics, ReadsHowTrainingJobsGoOn) {
  const auto metrics = ParseServerMetrics(
      "tandem_training_iterations_total{job=\"7\"} 120\n"
      "tandem_training_held_seconds_total{job=\"7\",reason=\"slack\"} 1.5\n"
      "tandem_training_held_seconds_total{reason=\"quota\",job=\"7\"} 0.25\n"
      "tandem_training_iterations_total{job=\"8\"} NaN\n");
  ASSERT_TRUE(metrics);
  EXPECT_TRUE(metrics->ours);
  ASSERT_EQ(metrics->jobs.size(), 1u);
  EXPECT_EQ(metrics->jobs.at("7").iterations, 120);
  EXPECT_EQ(metrics->jobs.at("7").held_s.at("quota"), 0.25);
  EXPECT_EQ(metrics->jobs.at("7").held(), 1.75);
  EXPECT_TRUE(ParseServerMetrics(kAfter)->ours);
}

TEST(ServerMetrics, ReadsHowSoonTrainersSeeTheGate) {
  const std::string name = "tandem_gate_acknowledgement_seconds";
  const auto metrics =
      ParseServerMetrics(Format("{0}_bucket{{le=\"0.001\"}} 90\n{0}_bucket{{le=\"0.002\"}} 98\n"
                                "{0}_bucket{{le=\"+Inf\"}} 100\n{0}_sum 0.2\n{0}_count 100\n",
                                name));
  ASSERT_TRUE(metrics);
  ASSERT_EQ(metrics->acknowledgements.size(), 3u);
  EXPECT_EQ(metrics->acknowledgements.at(0.002), 98);
  EXPECT_EQ(metrics->acknowledgements.rbegin()->second, 100);
}

TEST(ServerMetrics, ReadsHowManyMissesTrainingIsToBlameFor) {
  const auto metrics = ParseServerMetrics(
      "tandem_slo_missed_by_cause_total{model=\"a\",cause=\"training\"} 2\n"
      "tandem_slo_missed_by_cause_total{model=\"a\",cause=\"other\"} 30\n"
      "tandem_slo_missed_by_cause_total{model=\"b\",cause=\"training\"} 1\n"
      "tandem_slo_missed_by_cause_total{model=\"b\",cause=\"unknown\"} 4\n");
  ASSERT_TRUE(metrics);
  EXPECT_EQ(metrics->missed_by_training, 7) << "what may be its fault is taken to be";
  EXPECT_EQ(ParseServerMetrics(kAfter)->missed_by_training, std::nullopt);
}

TEST(PercentileBound, IsThatOfTheBucketBetweenTwoReadings) {
  const CountsUpTo before = {{0.001, 1000}, {0.002, 1000}, {0.004, 1000}};
  const CountsUpTo after = {{0.001, 1090}, {0.002, 1098}, {0.004, 1100}};
  EXPECT_EQ(PercentileBound(before, after, 50), 0.001);
  EXPECT_EQ(PercentileBound(before, after, 98), 0.002);
  EXPECT_EQ(PercentileBound(before, after, 99), 0.004);
  EXPECT_EQ(PercentileBound({}, after, 99), 0.001);
}

TEST(PercentileBound, AboveAllBoundsIsTheLargestAndNothingIsNone) {
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(PercentileBound({}, {{0.001, 1}, {0.002, 1}, {infinite, 9}}, 99), 0.002);
  EXPECT_EQ(PercentileBound({{0.001, 5}, {infinite, 5}}, {{0.001, 5}, {infinite, 5}}, 99), std::nullopt);
  EXPECT_EQ(PercentileBound({}, {}, 99), std::nullopt);
  EXPECT_EQ(PercentileBound({}, {{infinite, 3}}, 99), std::nullopt);
}

TEST(ServerMetrics, AServerCannotMakeTheReaderKeepWithoutBound) {
  std::string text;
  for (int i = 0; i < 10'001; ++i) text += Format("tandem_training_iterations_total{{job=\"{}\"}} 1\n", i);
  const auto metrics = ParseServerMetrics(text);
  ASSERT_FALSE(metrics);
  EXPECT_EQ(metrics.error().code, ErrorCode::kTooLarge);
}

TEST(ServerMetrics, SaysWhichLineIsNone) {
  for (const char* text : {"<html>", "name", "name{", "name{a}", "name{a=}", "name{a=\"x} 1", "name{a=\"x\\", "name 1x",
                           "name{a=\"x\"}", "name x", "{a=\"b\"} 1"}) {
    const auto metrics = ParseServerMetrics(std::string("ok 1\n") + text);
    ASSERT_FALSE(metrics) << text;
    EXPECT_NE(metrics.error().message.find("line 2"), std::string::npos) << metrics.error().message;
  }
}

}  // namespace
}  // namespace tandem::loadgen
