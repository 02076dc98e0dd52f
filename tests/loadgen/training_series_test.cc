#include "loadgen/training_series.h"

#include <gtest/gtest.h>

#include "tests/loadgen/parse_json.h"

namespace tandem::loadgen {
namespace {

using namespace std::chrono_literals;

const MonotonicTime kStart = MonotonicTime(100s);

std::map<std::string, TrainingCounters> Job(double iterations, double slack, double quota = 0) {
  return {{"7", {.iterations = iterations, .held_s = {{"slack", slack}, {"quota", quota}}}}};
}

TEST(TrainingSeries, TellsRatesBetweenReadings) {
  TrainingSeries series;
  series.Add(kStart - 1s, Job(100, 5));
  EXPECT_TRUE(series.empty());
  series.Add(kStart + 1s, Job(120, 5.5, 0.5));
  series.Add(kStart + 2s, Job(120, 6.5, 0.5));
  ASSERT_EQ(series.times().size(), 2u);
  const auto jobs = series.Jobs();
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0].iterations, 20);
  EXPECT_EQ(jobs[0].held_s.at("slack"), 1.5);
  EXPECT_EQ(jobs[0].held_s.at("quota"), 0.5);
  EXPECT_EQ(jobs[0].spans[0].iterations_per_s, 10);
  EXPECT_EQ(jobs[0].spans[0].held_share, 0.5);
  EXPECT_EQ(jobs[0].spans[1].iterations_per_s, 0);
  EXPECT_EQ(jobs[0].spans[1].held_share, 1);
  EXPECT_EQ(*series.HeldLately(), 1);

  const Json::Value json = ParseJson(TrainingJson(series, kStart));
  EXPECT_EQ(json["at_s"][1].asDouble(), 2);
  EXPECT_EQ(json["jobs"][0]["job"].asString(), "7");
  EXPECT_EQ(json["jobs"][0]["iterations_per_s"][0].asDouble(), 10);
  EXPECT_EQ(json["jobs"][0]["held_share"].size(), 2u);
  EXPECT_EQ(json["jobs"][0]["held_s"]["quota"].asDouble(), 0.5);
}

TEST(TrainingSeries, WithoutJobsThereIsNothingToShow) {
  TrainingSeries series;
  for (int i = 0; i < 3; ++i) series.Add(kStart + i * 1s, {});
  EXPECT_TRUE(series.empty());
  EXPECT_FALSE(series.HeldLately());
  EXPECT_EQ(TrainingJson(series, kStart), "null");
}

TEST(TrainingSeries, JobsComeAndGoAndServersStartAgain) {
  TrainingSeries series;
  series.Add(kStart, {});
  series.Add(kStart + 1s, Job(10, 0));
  series.Add(kStart + 2s, {});
  series.Add(kStart + 3s, Job(4, 0));
  const auto jobs = series.Jobs();
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0].spans[0].iterations_per_s, 10);
  EXPECT_EQ(jobs[0].spans[1].iterations_per_s, 0);
  EXPECT_EQ(jobs[0].spans[2].iterations_per_s, 4);
  EXPECT_EQ(jobs[0].iterations, 14);
}

TEST(TrainingSeries, MemoryIsBoundedAndTheWholeTimeIsKept) {
  TrainingSeries series;
  constexpr int kSeconds = 100'000;
  for (int i = 0; i <= kSeconds; ++i) series.Add(kStart + i * 1s, Job(i, 0));
  EXPECT_LE(series.times().size(), TrainingSeries::kMaxReadings);
  EXPECT_GE(series.times().size(), TrainingSeries::kMaxReadings / 4);
  EXPECT_GE(series.times().back(), kStart + kSeconds * 9 / 10 * 1s);
  const auto jobs = series.Jobs();
  ASSERT_FALSE(jobs[0].spans.empty());
  for (const auto& span : jobs[0].spans) EXPECT_DOUBLE_EQ(span.iterations_per_s, 1);
  std::map<std::string, TrainingCounters> many;
  for (int i = 0; i < 1000; ++i) many[std::to_string(i)] = {.iterations = 1, .held_s = {}};
  series.Add(kStart + (kSeconds + 100) * 1s, many);
  EXPECT_LE(series.Jobs().size(), TrainingSeries::kMaxJobs);
}

}  // namespace
}  // namespace tandem::loadgen
