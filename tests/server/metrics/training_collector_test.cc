#include "server/metrics/training_collector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

namespace tandem {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Text(const jobs::TrainingTotals& totals) {
  return prometheus::TextSerializer().Serialize(TrainingFamilies(totals));
}

TEST(TrainingCollector, ShowsJobsUnderTheirNumbers) {
  const std::string shown = Text({.states = {{jobs::JobState::kRunning, 1}, {jobs::JobState::kQueued, 0}},
                                  .jobs = {{.job = 7,
                                            .iterations = 1234567,
                                            .attempts = 3,
                                            .retries = 2,
                                            .checkpoints = 4,
                                            .held = {{HoldReason::kPaused, 1500ms}},
                                            .loss = 0.25,
                                            .persistent_error = 0.125,
                                            .ephemeral_error = -0.5},
                                           {.job = 8, .attempts = 1}},
                                  .publishes = {{jobs::PublishResult::kPublished, 2}}});
  for (const char* line : {
           "# TYPE tandem_training_iterations_total counter",
           "# TYPE tandem_training_loss gauge",
           R"(tandem_training_jobs{state="running"} 1)",
           R"(tandem_training_jobs{state="queued"} 0)",
           R"(tandem_training_iterations_total{job="7"} 1234567)",
           R"(tandem_training_attempts_total{job="7"} 3)",
           R"(tandem_training_retries_total{job="7"} 2)",
           R"(tandem_training_checkpoints_total{job="7"} 4)",
           R"(tandem_training_held_seconds_total{job="7",reason="paused"} 1.5)",
           R"(tandem_training_held_seconds_total{job="8",reason="paused"} 0)",
           R"(tandem_training_loss{job="7"} 0.25)",
           R"(tandem_training_memory_estimate_error{job="7",part="persistent"} 0.125)",
           R"(tandem_training_memory_estimate_error{job="7",part="ephemeral"} -0.5)",
           R"(tandem_training_publishes_total{result="published"} 2)",
           R"(tandem_training_publishes_total{result="rolled_back"} 0)",
       }) {
    EXPECT_THAT(shown, HasSubstr(line));
  }
  EXPECT_THAT(shown, Not(HasSubstr(R"(tandem_training_loss{job="8"})"))) << "it has made no step";
}

}  // namespace
}  // namespace tandem
