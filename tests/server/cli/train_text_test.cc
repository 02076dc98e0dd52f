#include "server/cli/train_text.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/wire/json_document.h"
#include "api/wire/training_job_json.h"

namespace tandem::cli {
namespace {

using ::testing::HasSubstr;

Json::Value Parsed(const std::string& text) {
  return *ParseStrictJson(text);
}

TEST(TrainText, EveryProblemHasALineWithItsPlace) {
  EXPECT_EQ(ProblemLines({{"/epochs", "/epochs is 0; it must be a whole number"},
                          {"/optimizer/lr", "the learning rate is too large"},
                          {"", "not JSON: a comma is missing"}}),
            "  /epochs is 0; it must be a whole number\n"
            "  /optimizer/lr: the learning rate is too large\n"
            "  not JSON: a comma is missing\n");
}

TEST(TrainText, WhatTheServerFindsWrongIsNamedOnce) {
  const auto job = ParseTrainingJob(R"({"epochs":0,"speed":1})");
  ASSERT_FALSE(job);
  const std::string lines = ProblemLines(job.error().list);
  for (const char* part : {"/epochs is 0", "/speed", "/model", "/data"}) EXPECT_THAT(lines, HasSubstr(part));
  EXPECT_THAT(lines, ::testing::Not(HasSubstr("/epochs: /epochs")));
}

constexpr const char* kJob =
    R"({"id":7,"name":"try","owner":"ann","state":"failed","reason":"no memory","model":"digits","model_version":"2",
        "published_version":"","progress":{"step":4,"total_steps":9,"epoch":0,"loss":0.5},"attempts":3,
        "created_at":"2026-01-31T12:00:00.000Z","job":{"epochs":3}})";

TEST(TrainText, AJobHasALineInTheList) {
  const auto table = JobTable(Parsed(std::string(R"({"next":null,"jobs":[)") + kJob + "]}"));
  ASSERT_TRUE(table) << table.error().message;
  for (const char* part : {"JOB", "try", "ann", "failed", "digits:2", "4/9", "0.5", "2026-01-31T12:00:00"}) {
    EXPECT_THAT(*table, HasSubstr(part));
  }
  EXPECT_FALSE(JobTable(Parsed("[]")));
  EXPECT_FALSE(JobTable(Parsed(R"({"jobs":[1]})")));
}

TEST(TrainText, AJobIsShownWithItsReasonAndWhatWasSubmitted) {
  const auto text = JobText(Parsed(kJob));
  ASSERT_TRUE(text) << text.error().message;
  for (const char* part : {"job 7 (try): failed", "no memory", "owner        ann", "digits version 2", "attempts     3",
                           "\"epochs\": 3"}) {
    EXPECT_THAT(*text, HasSubstr(part));
  }
}

constexpr const char* kEstimate =
    R"({"persistent":{"total":4194304,"weights":1048576,"optimizer":2097152,"data":0,"framework":1048576},
        "ephemeral":3221225472,"peak":"Conv gradient 'c1'","batch":32})";

TEST(TrainText, AnEstimateHasALineAPart) {
  const auto text = EstimateText(Parsed(kEstimate));
  ASSERT_TRUE(text) << text.error().message;
  for (const char* part : {"persistent", "4.0 MiB", "optimizer", "2.0 MiB", "3.0 GiB", "a step of 32 examples",
                           "the most at Conv gradient 'c1'"}) {
    EXPECT_THAT(*text, HasSubstr(part));
  }
  EXPECT_FALSE(EstimateText(Parsed("{}")));
  EXPECT_FALSE(EstimateText(Parsed(R"({"persistent":{},"ephemeral":"much","peak":"","batch":1})")));
}

TEST(TrainText, AJobShowsItsMemoryMeasuredBeforeEstimated) {
  Json::Value job = Parsed(kJob);
  job["memory"]["estimate"] = Parsed(kEstimate);
  EXPECT_THAT(*JobText(job), HasSubstr("memory       4.0 MiB, and 3.0 GiB more in a step, as estimated"));
  job["memory"]["measured"] = Parsed(R"({"persistent":5242880,"ephemeral":1024})");
  EXPECT_THAT(*JobText(job), HasSubstr("memory       5.0 MiB, and 1.0 KiB more in a step\n"));
  job["memory"] = 5;
  EXPECT_THAT(*JobText(job), ::testing::Not(HasSubstr("memory  ")));
}

TEST(TrainText, CheckpointsSayWhetherTheyAreGood) {
  const auto table = CheckpointTable(Parsed(
      R"({"checkpoints":[{"step":5,"file":"5.ckpt","bytes":1536,"checksum":"0badcafe","time":"T","good":false}]})"));
  ASSERT_TRUE(table) << table.error().message;
  for (const char* part : {"5.ckpt", "1.5 KiB", "0badcafe", "no"}) EXPECT_THAT(*table, HasSubstr(part));
  EXPECT_FALSE(CheckpointTable(Parsed(R"({"checkpoints":[{}]})")));
}

TEST(TrainText, SeriesShowTheirLastValuesAndPassOverWhatIsNoNumber) {
  const Json::Value answer = Parsed(R"({"loss":{"steps":[1,2,3],"values":[4,null,1]},"lr":{"steps":[],"values":[]}})");
  const auto table = SeriesTable(answer);
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(*table,
            "SERIES  POINTS  LAST STEP  FIRST  LAST  LEAST  MOST\n"
            "loss         2          3      4     1      1     4\n");
  EXPECT_FALSE(SeriesTable(Parsed(R"({"loss":{"steps":[1],"values":[]}})")));
}

TEST(TrainText, ASeriesIsDrawnFromItsFirstStepToItsLast) {
  const Json::Value answer =
      Parsed(R"({"loss":{"steps":[0,10,20],"values":[2,1,0]},"flat":{"steps":[5],"values":[3]}})");
  const auto plot = SeriesPlot(answer, "loss", 3, 5);
  ASSERT_TRUE(plot) << plot.error().message;
  EXPECT_EQ(*plot,
            "loss\n"
            "         2 |*    \n"
            "           |  *  \n"
            "         0 |    *\n"
            "           +-----\n"
            "      step  0  20\n");
  EXPECT_TRUE(SeriesPlot(answer, "flat", 3, 5));
  EXPECT_EQ(SeriesPlot(answer, "accuracy", 3, 5).error().code, ErrorCode::kNotFound);
}

TEST(TrainText, AnEventHasALine) {
  const ServerSentEvent state{
      "12", "state",
      R"({"job":7,"time":"2026-01-31T12:00:00.000Z","body":{"from":"running","to":"queued","reason":"killed"}})"};
  const auto line = EventLine(state);
  ASSERT_TRUE(line) << line.error().message;
  EXPECT_EQ(*line, "2026-01-31T12:00:00.000Z  job 7  state  running → queued: killed");
  const auto json = EventJson(state);
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["id"], "12");
  EXPECT_EQ((*json)["event"], "state");
  const auto other = EventLine({"13", "plan", R"({"job":7,"time":"T","body":{"total_steps":9}})"});
  ASSERT_TRUE(other);
  EXPECT_EQ(*other, R"(T  job 7  plan  {"total_steps":9})");
  EXPECT_FALSE(EventLine({"14", "state", "what?"}));
}

}  // namespace
}  // namespace tandem::cli
