#include "server/cli/train_progress.h"

#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/wire/json_document.h"

namespace tandem::cli {
namespace {

using std::chrono::seconds;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

JobView Running(std::int64_t step, std::int64_t total) {
  JobView job;
  job.id = 7;
  job.state = "running";
  job.step = step;
  job.total_steps = total;
  return job;
}

TEST(TrainProgress, ReadsAJob) {
  const auto job = ReadJobView(*ParseStrictJson(
      R"({"id":7,"name":"n","state":"running","reason":"","model":"digits","model_version":"1","published_version":"",
          "progress":{"step":4,"total_steps":9,"epoch":2,"loss":0.5,"metric":"accuracy","value":0.25,"best":null},
          "attempts":1,"created_at":"2026-01-31T12:00:00.000Z","started_at":null,"job":{"publish":"if_better"}})"));
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->id, 7);
  EXPECT_EQ(job->step, 4);
  EXPECT_EQ(job->total_steps, 9);
  EXPECT_EQ(job->loss, 0.5);
  EXPECT_EQ(job->metric_name, "accuracy");
  EXPECT_EQ(job->metric, 0.25);
  EXPECT_EQ(job->best, std::nullopt);
  EXPECT_EQ(job->publish, "if_better");
  EXPECT_EQ(job->started_at, "");
  for (const char* other : {"[]", "{}", R"({"id":7,"state":"running"})", R"({"id":"7","state":"x","progress":{}})"}) {
    EXPECT_FALSE(ReadJobView(*ParseStrictJson(other))) << other;
  }
}

TEST(TrainProgress, InAPipeALineSaysItAll) {
  JobView job = Running(40, 100);
  job.epoch = 2;
  job.loss = 0.12341;
  job.metric_name = "accuracy";
  job.metric = 0.9;
  job.best = 0.95;
  EXPECT_EQ(ProgressLine(job, 12.5, 0),
            "job 7  running  40/100  epoch 2  loss 0.1234  accuracy 0.9000 (best 0.9500)  12.5 steps/s  ETA 5 s");
}

TEST(TrainProgress, WhatIsNotKnownIsNotSaid) {
  EXPECT_EQ(ProgressLine(Running(0, 0), std::nullopt, 0), "job 7  running  step 0");
  EXPECT_EQ(ProgressLine(Running(5, 0), 2.0, 0), "job 7  running  step 5  2.0 steps/s");
  JobView waiting = Running(0, 0);
  waiting.state = "queued";
  waiting.reason = "its trainer\nwas lost";
  EXPECT_THAT(ProgressLine(waiting, std::nullopt, 0), Not(HasSubstr("\n")));
  EXPECT_THAT(ProgressLine(waiting, std::nullopt, 0), HasSubstr("was lost"));
}

TEST(TrainProgress, TheBarFillsAndNeverOverflowsTheTerminal) {
  EXPECT_EQ(ProgressLine(Running(0, 100), std::nullopt, 38), "job 7  running  [>             ] 0/100");
  EXPECT_EQ(ProgressLine(Running(50, 100), std::nullopt, 38), "job 7  running  [======>      ] 50/100");
  EXPECT_EQ(ProgressLine(Running(100, 100), std::nullopt, 38), "job 7  running  [============] 100/100");
  for (std::size_t columns = 1; columns < 120; ++columns) {
    for (const std::int64_t step : {0, 99, 100, 250}) {
      EXPECT_LE(ProgressLine(Running(step, 100), 3.5, columns).size(), columns);
    }
  }
  EXPECT_THAT(ProgressLine(Running(50, 100), std::nullopt, 24), Not(HasSubstr("[")));
  JobView waiting = Running(0, 0);
  waiting.reason = "ääää";
  for (std::size_t columns = 24; columns < 34; ++columns) {
    // A character is whole or not there.
    EXPECT_THAT(ProgressLine(waiting, std::nullopt, columns), StartsWith("job 7  running  step 0"));
    EXPECT_EQ(ProgressLine(waiting, std::nullopt, columns).size() % 2, 0U) << columns;
  }
}

TEST(TrainProgress, TheEpochGivesWayToTheBar) {
  JobView job = Running(50, 100);
  job.epoch = 3;
  EXPECT_EQ(ProgressLine(job, std::nullopt, 42), "job 7  running  [====>   ] 50/100  epoch 3");
  EXPECT_EQ(ProgressLine(job, std::nullopt, 41), "job 7  running  [========>       ] 50/100");
  EXPECT_EQ(ProgressLine(job, std::nullopt, 32), "job 7  running  50/100  epoch 3");
}

TEST(TrainProgress, TheTimeLeftFollowsFromTheRate) {
  EXPECT_THAT(ProgressLine(Running(10, 100), 0.5, 0), EndsWith("ETA 3 m 0 s"));
  EXPECT_THAT(ProgressLine(Running(100, 100), 0.5, 0), EndsWith("ETA 0 s"));
  EXPECT_THAT(ProgressLine(Running(1, 1'000'000'000), 1e-9, 0), Not(HasSubstr("ETA")));
  EXPECT_EQ(DurationText(seconds(59)), "59 s");
  EXPECT_EQ(DurationText(seconds(200)), "3 m 20 s");
  EXPECT_EQ(DurationText(seconds(7500)), "2 h 5 m");
  EXPECT_EQ(DurationText(seconds(90000)), "1 d 1 h");
}

TEST(StepRate, ComesFromTheStepsSeenLately) {
  StepRate rate;
  MonotonicTime now{};
  rate.Add(now, Running(0, 1000));
  EXPECT_EQ(rate.PerSecond(), std::nullopt);
  // 10 steps a second at first, then 1: the past is forgotten.
  for (int i = 1; i <= 60; ++i) rate.Add(now += seconds(1), Running(10 * i, 1000));
  EXPECT_DOUBLE_EQ(rate.PerSecond().value_or(0), 10);
  for (int i = 1; i <= 60; ++i) rate.Add(now += seconds(1), Running(600 + i, 1000));
  EXPECT_DOUBLE_EQ(rate.PerSecond().value_or(0), 1);
}

TEST(StepRate, BeginsAnewAfterAPauseOrASetback) {
  StepRate rate;
  MonotonicTime now{};
  rate.Add(now, Running(0, 1000));
  rate.Add(now += seconds(1), Running(100, 1000));
  rate.Add(now += seconds(1), Running(50, 1000));  // From its checkpoint.
  EXPECT_EQ(rate.PerSecond(), std::nullopt);
  rate.Add(now += seconds(1), Running(60, 1000));
  EXPECT_DOUBLE_EQ(rate.PerSecond().value_or(0), 10);
  JobView paused = Running(60, 1000);
  paused.state = "paused";
  rate.Add(now += seconds(1), paused);
  EXPECT_EQ(rate.PerSecond(), std::nullopt);
  rate.Add(now += seconds(100), Running(60, 1000));
  rate.Add(now += seconds(1), Running(65, 1000));
  EXPECT_DOUBLE_EQ(rate.PerSecond().value_or(0), 5);
}

TEST(TrainProgress, TheEndSaysWhy) {
  JobView job = Running(100, 100);
  job.state = "failed";
  job.reason = "the loss is not a number at step 100\n\x1b[31mlast words\n";
  EXPECT_EQ(EndLine(job), "job 7 failed  100/100\nthe loss is not a number at step 100\n?[31mlast words");
  job.state = "succeeded";
  job.reason = "";
  job.model = "digits";
  job.published_version = "3";
  EXPECT_EQ(EndLine(job), "job 7 succeeded  100/100  published as version 3 of digits");
}

}  // namespace
}  // namespace tandem::cli
