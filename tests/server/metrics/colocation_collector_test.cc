#include "server/metrics/colocation_collector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

namespace tandem {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ColocationCollector, ShowsDecisionsAndLimits) {
  ArbiterState state;
  for (const auto time : {800ns, 4us + 0ns, 5us + 0ns, 2ms + 0ns}) state.decisions.Add(time);
  state.applied.Add(30us);
  state.quotas = {{.group = "/a", .limit = CpuLimit{.quota = 150ms, .period = 100ms}, .throttled_periods = 7},
                  {.group = "/b", .limit = {}}};
  const std::string shown = prometheus::TextSerializer().Serialize(ColocationFamilies(state));
  for (const char* line : {
           "# TYPE tandem_decision_seconds histogram",
           R"(tandem_decision_seconds_bucket{le="1e-06"} 1)",
           R"(tandem_decision_seconds_bucket{le="2e-06"} 1)",
           R"(tandem_decision_seconds_bucket{le="5e-06"} 3)",
           R"(tandem_decision_seconds_bucket{le="0.001"} 3)",
           R"(tandem_decision_seconds_bucket{le="+Inf"} 4)",
           "tandem_decision_seconds_count 4",
           R"(tandem_decision_applied_seconds_bucket{le="2e-05"} 0)",
           R"(tandem_decision_applied_seconds_bucket{le="5e-05"} 1)",
           R"(tandem_cpu_limit_cores{group="/a"} 1.5)",
           R"(tandem_cpu_limit_throttled_periods_total{group="/a"} 7)",
       }) {
    EXPECT_THAT(shown, HasSubstr(line));
  }
  EXPECT_THAT(shown, Not(HasSubstr(R"(group="/b")"))) << "it has no limit";
}

TEST(ColocationCollector, ShowsHowTurnsGoFromJobToJob) {
  TurnsState state;
  state.switches = 3;
  state.switch_times.Add(30us);
  state.switch_times.Add(2ms);
  const std::string shown = prometheus::TextSerializer().Serialize(TurnFamilies(state));
  for (const char* line : {
           "tandem_job_switches_total 3",
           R"(tandem_job_switch_seconds_bucket{le="3.2e-05"} 1)",
           "tandem_job_switch_seconds_count 2",
       }) {
    EXPECT_THAT(shown, HasSubstr(line));
  }
}

}  // namespace
}  // namespace tandem
