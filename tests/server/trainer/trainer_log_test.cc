#include "server/trainer/trainer_log.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/fakes/jumping_clock.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

struct Counter final : training::TrainerListener {
  void OnPlan(const Plan&) override { ++heard; }
  void OnStep(const Step&) override { ++heard; }
  void OnEvaluation(const Evaluation&) override { ++heard; }
  void OnCheckpoint(const training::SavedCheckpoint&) override { ++heard; }
  void OnSkippedCheckpoint(const std::filesystem::path&, const Error&) override { ++heard; }

  int heard = 0;
};

class TrainerLogTest : public testing::Test {
 protected:
  ~TrainerLogTest() override { std::fclose(file_); }

  // Without their times.
  std::vector<std::string> Lines() {
    std::string text(std::size_t{1} << 20, '\0');
    const ssize_t got = ::pread(::fileno(file_), text.data(), text.size(), 0);
    text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    EXPECT_TRUE(text.empty() || text.ends_with('\n')) << "lines are written whole";
    std::istringstream in(text);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) {
      EXPECT_THAT(line, testing::MatchesRegex("[0-9]+-[0-9]+-[0-9]+T[0-9]+:[0-9]+:[0-9]+Z .*"));
      lines.push_back(line.substr(std::min(line.size(), line.find(' ') + 1)));
    }
    return lines;
  }
  static training::SavedCheckpoint Saved(std::int64_t step) {
    return {.step = step, .file = "step.checkpoint", .size = training::CheckpointSize{.bytes = 4096, .checksum = 1}};
  }

  std::FILE* const file_ = std::tmpfile();
  JumpingClock clock_;
  Counter next_;
  TrainerLog log_{::fileno(file_), clock_, next_};
};

TEST_F(TrainerLogTest, TellsARunFromItsBeginningToItsEnd) {
  TrainerRun run{.threads = 2, .number = 7};
  run.job.name = "two\nlines";
  run.job.model = "digits";
  run.job.model_version = "3";
  log_.OnRun(run);
  log_.OnPlan({.first_step = 0,
               .total_steps = 75,
               .examples = 800,
               .evaluation_examples = 200,
               .parameters = 650,
               .model_parameters = 13'002});
  log_.OnEvaluation({.step = 0, .loss = 2.3, .accuracy = 0.1, .best = true});
  log_.OnStep({.step = 1, .epoch = 0, .loss = 2.25, .learning_rate = 0.01});
  log_.OnCheckpoint(Saved(40));
  log_.OnEnd({.outcome = TrainerOutcome::kFinished, .step = 75, .baseline = {}, .best = {}, .error = {}});
  EXPECT_THAT(Lines(),
              ElementsAre(R"(job 7 "two\nlines": model digits version 3, 2 threads)",
                          "650 of 13002 parameters are trained, on 800 examples; evaluated on 200 others",
                          "begins at step 0 of 75", "evaluation at step 0: loss 2.3, accuracy 0.1, the best so far",
                          "checkpoint at step 40: 4096 bytes", "finished at step 75"));
  EXPECT_EQ(next_.heard, 4);
}

TEST_F(TrainerLogTest, TellsOfStepsOnlyNowAndThen) {
  log_.OnPlan({.first_step = 5, .total_steps = 1000});
  const std::size_t before = Lines().size();
  for (int step = 6; step < 500; ++step) log_.OnStep({.step = step});
  EXPECT_EQ(Lines().size(), before);
  clock_.Advance(10s);
  for (int step = 500; step < 900; ++step) log_.OnStep({.step = step, .epoch = 2, .loss = 0.5, .learning_rate = 0.125});
  ASSERT_EQ(Lines().size(), before + 1);
  EXPECT_EQ(Lines().back(), "step 500 of 1000: epoch 2, loss 0.5, learning rate 0.125");
}

TEST_F(TrainerLogTest, StaysShortHoweverOftenAJobIsEvaluated) {
  for (int step = 0; step < 3 * TrainerLog::kFreeLines; ++step) log_.OnEvaluation({.step = step});
  EXPECT_EQ(Lines().size(), TrainerLog::kFreeLines);
  clock_.Advance(10s);
  for (int step = 0; step < 1000; ++step) log_.OnCheckpoint(Saved(step));
  ASSERT_EQ(Lines().size(), TrainerLog::kFreeLines + 1);
  EXPECT_EQ(Lines().back(), "(2000 lines left out) checkpoint at step 0: 4096 bytes");
  log_.OnEnd({.outcome = TrainerOutcome::kFailed,
              .step = 0,
              .baseline = {},
              .best = {},
              .error = {ErrorCode::kInternal, "the disk\nis full"}});
  EXPECT_EQ(Lines().back(), "(999 lines left out) failed: the disk is full");
}

TEST_F(TrainerLogTest, WhatWentWrongIsTold) {
  log_.OnSkippedCheckpoint("/somewhere/step-3.checkpoint", {ErrorCode::kInternal, "its checksum is another"});
  log_.OnCheckpoint({.step = 9, .file = "x", .size = Fail(ErrorCode::kInternal, "no space")});
  EXPECT_THAT(Lines(), ElementsAre("step-3.checkpoint is passed over: its checksum is another",
                                   "no checkpoint at step 9: no space"));
}

}  // namespace
}  // namespace tandem
