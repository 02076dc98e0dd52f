#include "server/metrics/request_metrics.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

namespace tandem {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

class RequestMetricsTest : public ::testing::Test {
 protected:
  std::string Text() const { return prometheus::TextSerializer().Serialize(registry_.Collect()); }

  prometheus::Registry registry_;
  RequestMetrics metrics_{registry_};
};

TEST_F(RequestMetricsTest, CountsLatencyUnderItsOutcome) {
  metrics_.Record({.model = "m", .outcome = RequestOutcome::kSuccess, .latency = 4ms});
  metrics_.Record({.model = "m", .outcome = RequestOutcome::kSuccess, .latency = 40ms});
  metrics_.Record({.model = "m", .outcome = RequestOutcome::kInvalid, .latency = 1ms});
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr(R"(tandem_request_latency_seconds_count{model="m",outcome="success"} 2)"));
  EXPECT_THAT(text, HasSubstr(R"(tandem_request_latency_seconds_bucket{model="m",outcome="success",le="0.005"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(tandem_request_latency_seconds_count{model="m",outcome="invalid"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(tandem_request_latency_seconds_count{model="m",outcome="error"} 0)"));
}

TEST_F(RequestMetricsTest, ModelsThatHaveGoneLeaveNothingBehind) {
  for (const char* model : {"", "a", "b"}) {
    metrics_.Record({.model = model, .outcome = RequestOutcome::kSuccess, .latency = 4ms, .slo = SloVerdict::kMet});
    metrics_.RecordRun(model, 1, {}, 1ms);
  }
  metrics_.Retain({"a"});
  EXPECT_THAT(Text(), HasSubstr(R"(model="a")"));
  EXPECT_THAT(Text(), HasSubstr(R"(model="")"));
  EXPECT_THAT(Text(), Not(HasSubstr(R"(model="b")")));
  metrics_.Record({.model = "b", .outcome = RequestOutcome::kSuccess, .latency = 4ms});
  EXPECT_THAT(Text(), HasSubstr(R"(tandem_request_latency_seconds_count{model="b",outcome="success"} 1)"));
}

TEST_F(RequestMetricsTest, CountsTheVerdictOnTheSlo) {
  const auto record = [this](RequestOutcome outcome, SloVerdict slo) {
    metrics_.Record({.model = "m", .outcome = outcome, .slo = slo});
  };
  record(RequestOutcome::kSuccess, SloVerdict::kMet);
  record(RequestOutcome::kSuccess, SloVerdict::kMet);
  record(RequestOutcome::kSuccess, SloVerdict::kMissed);
  record(RequestOutcome::kRejected, SloVerdict::kRejected);
  record(RequestOutcome::kSuccess, SloVerdict::kNone);
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr(R"(tandem_slo_met_total{model="m"} 2)"));
  EXPECT_THAT(text, HasSubstr(R"(tandem_slo_missed_total{model="m"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(tandem_slo_rejected_total{model="m"} 1)"));
}

TEST_F(RequestMetricsTest, CountsWhatIsMissedByItsCause) {
  metrics_.Record({.model = "m", .slo = SloVerdict::kMissed, .cause = MissCause::kTraining});
  metrics_.Record({.model = "m", .slo = SloVerdict::kRejected, .cause = MissCause::kOther});
  metrics_.Record({.model = "m", .slo = SloVerdict::kMissed, .cause = MissCause::kOther});
  metrics_.Record({.model = "m", .slo = SloVerdict::kMissed, .cause = MissCause::kUnknown});
  metrics_.Record({.model = "m", .slo = SloVerdict::kMet});
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr(R"(tandem_slo_missed_by_cause_total{cause="training",model="m"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(tandem_slo_missed_by_cause_total{cause="other",model="m"} 2)"));
  EXPECT_THAT(text, HasSubstr(R"(tandem_slo_missed_by_cause_total{cause="unknown",model="m"} 1)"));
}

TEST_F(RequestMetricsTest, TellsHowWellRunsArePredicted) {
  metrics_.RecordRun("m", 1, 10ms, 12ms);
  metrics_.RecordRun("m", 1, {}, 12ms);
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr(R"(tandem_run_prediction_ratio_bucket{model="m",le="1.1"} 0)"));
  EXPECT_THAT(text, HasSubstr(R"(tandem_run_prediction_ratio_bucket{model="m",le="1.2"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(tandem_run_prediction_ratio_count{model="m"} 1)"));
}

TEST_F(RequestMetricsTest, ModelsAreKeptApart) {
  metrics_.RecordRun("a", 3, {}, 1ms);
  metrics_.RecordRun("b", 300, {}, 1ms);
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr(R"(tandem_batch_size_bucket{model="a",le="4"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(tandem_batch_size_bucket{model="b",le="256"} 0)"));
  EXPECT_THAT(text, HasSubstr(R"(tandem_batch_size_sum{model="b"} 300)"));
  EXPECT_THAT(text, Not(HasSubstr("model=\"c\"")));
}

}  // namespace
}  // namespace tandem
