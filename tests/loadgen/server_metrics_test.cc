#include "loadgen/server_metrics.h"

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
