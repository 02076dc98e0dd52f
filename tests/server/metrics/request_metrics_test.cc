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

TEST_F(RequestMetricsTest, EveryRequestWithADeadlineIsMetMissedOrRejectedOnce) {
  const auto record = [this](RequestOutcome outcome, bool in_time) {
    metrics_.Record({.model = "m", .outcome = outcome, .has_deadline = true, .in_time = in_time});
  };
  record(RequestOutcome::kSuccess, true);
  record(RequestOutcome::kSuccess, true);
  record(RequestOutcome::kSuccess, false);
  record(RequestOutcome::kRejected, true);
  record(RequestOutcome::kExpired, false);
  // The client's own doing says nothing about the SLO.
  record(RequestOutcome::kInvalid, true);
  record(RequestOutcome::kCancelled, true);
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr(R"(tandem_slo_met_total{model="m"} 2)"));
  EXPECT_THAT(text, HasSubstr(R"(tandem_slo_missed_total{model="m"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(tandem_slo_rejected_total{model="m"} 2)"));
}

TEST_F(RequestMetricsTest, RequestsWithoutADeadlineAreNotInTheSloCounters) {
  metrics_.Record({.model = "m", .outcome = RequestOutcome::kSuccess});
  metrics_.Record({.model = "m", .outcome = RequestOutcome::kRejected});
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr(R"(tandem_slo_met_total{model="m"} 0)"));
  EXPECT_THAT(text, HasSubstr(R"(tandem_slo_rejected_total{model="m"} 0)"));
}

TEST_F(RequestMetricsTest, ModelsAreKeptApart) {
  metrics_.RecordBatch("a", 3);
  metrics_.RecordBatch("b", 300);
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr(R"(tandem_batch_size_bucket{model="a",le="4"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(tandem_batch_size_bucket{model="b",le="256"} 0)"));
  EXPECT_THAT(text, HasSubstr(R"(tandem_batch_size_sum{model="b"} 300)"));
  EXPECT_THAT(text, Not(HasSubstr("model=\"c\"")));
}

}  // namespace
}  // namespace tandem
