#include "server/cli/demo_text.h"

#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TrainingStatus Running() {
  TrainingStatus status;
  status.job.id = 1;
  status.job.model = "digits";
  status.job.state = "running";
  status.job.step = 40;
  status.job.total_steps = 100;
  status.job.loss = 0.5;
  status.job.metric_name = "accuracy";
  status.job.metric = 0.75;
  status.steps_per_second = 20;
  status.losses = {2.3, 0.5};
  status.accuracies = {0.1, 0.75};
  return status;
}

TEST(DemoText, SaysHowFarTheBuildIs) {
  EXPECT_EQ(BuildLine(std::nullopt), "building the trainer");
  EXPECT_EQ(BuildLine(BuildSteps{.done = 12, .total = 61}), "building the trainer: 12 of 61");
}

TEST(DemoText, InAPipeTrainingIsOneLine) {
  EXPECT_THAT(TrainingLines(Running(), 0),
              ElementsAre("job 1  running  40/100  loss 0.5000  accuracy 0.7500  20.0 steps/s  ETA 3 s"));
}

TEST(DemoText, OnATerminalTrainingHasItsCurves) {
  EXPECT_THAT(TrainingLines(Running(), 100),
              ElementsAre(HasSubstr("[==="), "accuracy  ▁█  0.1000 → 0.7500", "loss      █▁  2.3000 → 0.5000"));
}

TEST(DemoText, SaysWhatWasPublished) {
  TrainingStatus status = Running();
  status.job.state = "succeeded";
  status.job.published_version = "2";
  status.decided = true;
  EXPECT_THAT(TrainingLines(status, 0),
              ElementsAre(StartsWith("job 1  succeeded"), "published as version 2 of digits"));
  status.problem = "not published: no better";
  EXPECT_THAT(TrainingLines(status, 0), ElementsAre(StartsWith("job 1  succeeded")));
}

TEST(DemoText, SaysNothingOfVersionsThatHaveNotAnswered) {
  EXPECT_EQ(ServedLine(ServedDigits({1, 2})), "");
}

TEST(Sparkline, GoesFromTheLowestToTheHighest) {
  EXPECT_EQ(Sparkline(std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7}, 20), "▁▂▃▄▅▆▇█");
  EXPECT_EQ(Sparkline(std::vector<double>{1, 5, 5, 5, 0}, 3), "▂█▁");
  EXPECT_EQ(Sparkline(std::vector<double>{9, 8, 0, 7}, 2), "█▁");
  EXPECT_EQ(Sparkline(std::vector<double>{9, 8, 0, 7}, 1), "▁");
  EXPECT_EQ(Sparkline(std::vector<double>{3, 3}, 20), "▁▁");
  EXPECT_EQ(Sparkline(std::vector<double>{}, 20), "");
  EXPECT_EQ(Sparkline(std::vector<double>{std::numeric_limits<double>::quiet_NaN()}, 20), "▁");
}

}  // namespace
}  // namespace tandem::cli
