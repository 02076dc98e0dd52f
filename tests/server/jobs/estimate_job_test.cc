// Real processes in the place of trainers, and a clock that stands still unless it is told to go on.

#include "server/jobs/estimate_job.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/trainer/run_file.h"
#include "tests/server/jobs/store_fixture.h"

namespace tandem::jobs {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr const char* kEstimate =
    R"(echo '{"event":"estimate","weights":1,"optimizer":2,"data":3,"framework":4,"ephemeral":50,"peak":"Conv","batch":8}' >&3)";
constexpr const char* kEnd =
    R"(echo '{"event":"end","outcome":"finished","step":0,"code":"internal","message":""}' >&3)";

class EstimateJobTest : public testing::Test {
 protected:
  EstimateJobTest() {
    options_.state = folder_.path();
    options_.trainer = folder_.path() / "trainer";
    options_.rank = TrainerClass::kNormal;
    options_.hang_limit = 300s;
    fs::create_directories(folder_.path() / "model");
    std::ofstream(Model()) << "graph";
  }
  fs::path Model() const { return folder_.path() / "model" / "model.onnx"; }
  Result<MemoryEstimate> Estimate(const std::string& script) {
    std::ofstream(options_.trainer) << "#!/bin/bash\n" << script << "\n";
    fs::permissions(options_.trainer, fs::perms::owner_all);
    return EstimateJob(job_, Model(), options_, clock_, stop_);
  }

  const TestFolder folder_;
  JobOptions options_;
  TrainingJob job_;
  JumpingClock clock_;
  std::atomic<bool> stop_{false};
};

TEST_F(EstimateJobTest, TellsWhatTheTrainerEstimated) {
  const auto estimate = Estimate(std::string(kEstimate) + "\n" + kEnd);
  ASSERT_TRUE(estimate) << estimate.error().message;
  EXPECT_EQ(estimate->persistent.total(), 10U);
  EXPECT_EQ(estimate->ephemeral, 50U);
  EXPECT_EQ(estimate->peak, "Conv");
  EXPECT_EQ(estimate->batch, 8);
  EXPECT_FALSE(fs::exists(folder_.path() / "estimating")) << "nothing is left behind";
}

TEST_F(EstimateJobTest, ItsTrainerIsAskedForNothingElseAndBoundedByTheModel) {
  const fs::path copy = folder_.path() / "run.json";
  job_.memory = 5;
  const auto estimate = Estimate("cp \"$1\" " + copy.string() + "\n" + kEstimate + "\n" + kEnd);
  ASSERT_TRUE(estimate) << estimate.error().message;
  std::ifstream file(copy);
  const std::string run{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(run, HasSubstr(R"("estimate_only":true)"));
  EXPECT_THAT(run, HasSubstr(R"("limit":1073741849)")) << "a gigabyte, and five times the five bytes of the model";
}

TEST_F(EstimateJobTest, WhatATrainerRefusesIsTold) {
  const auto estimate = Estimate(
      R"(echo '{"event":"end","outcome":"failed","step":0,"code":"unsupported","message":"NonZero node"}' >&3; exit 1)");
  ASSERT_FALSE(estimate);
  EXPECT_EQ(estimate.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(estimate.error().message, "NonZero node");
}

TEST_F(EstimateJobTest, WantOfMemoryIsNotBlamedOnTheJob) {
  const auto estimate = Estimate(
      R"(echo '{"event":"end","outcome":"failed","step":0,"code":"too_large","message":"out of memory: x"}' >&3; exit 1)");
  ASSERT_FALSE(estimate);
  EXPECT_EQ(estimate.error().code, ErrorCode::kTooLarge);
  EXPECT_THAT(estimate.error().message, HasSubstr("than the 1073741849 bytes that an estimate may have"));
}

TEST_F(EstimateJobTest, OneThatSaysNothingIsAFailure) {
  EXPECT_FALSE(Estimate(kEnd));
  EXPECT_FALSE(Estimate("exit 3"));
}

TEST_F(EstimateJobTest, AServerThatStopsDoesNotWait) {
  stop_ = true;
  const auto estimate = Estimate("sleep 3600");
  ASSERT_FALSE(estimate);
  EXPECT_EQ(estimate.error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace tandem::jobs
