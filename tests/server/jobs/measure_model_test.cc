// Real processes in the place of trainers, and a clock that stands still.

#include "server/jobs/measure_model.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/jobs/fake_control_group.h"
#include "tests/server/jobs/store_fixture.h"

namespace tandem::jobs {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr const char* kMeasured =
    R"(echo '{"event":"end","outcome":"finished","step":0,"baseline":0.75,"best":0.75,"code":"internal","message":""}' >&3)";

class MeasureModelTest : public testing::Test {
 protected:
  MeasureModelTest() {
    options_.state = folder_.path();
    options_.trainer = folder_.path() / "trainer";
    options_.rank = TrainerClass::kNormal;
    options_.hang_limit = 300s;
  }
  Result<double> Measure(const std::string& script) {
    std::ofstream(options_.trainer) << "#!/bin/bash\n" << script << "\n";
    fs::permissions(options_.trainer, fs::perms::owner_all);
    return MeasureModel(job_, "model.onnx", JobFolder::Of(options_.state, 7), options_, clock_, stop_);
  }

  const TestFolder folder_;
  JobOptions options_;
  TrainingJob job_;
  JumpingClock clock_;
  std::atomic<bool> stop_{false};
};

TEST_F(MeasureModelTest, TellsWhatTheTrainerMeasured) {
  const auto measured = Measure(kMeasured);
  ASSERT_TRUE(measured) << measured.error().message;
  EXPECT_EQ(*measured, 0.75);
}

TEST_F(MeasureModelTest, ItsTrainerHasAControlGroup) {
  options_.memory_groups = folder_.path() / "groups";
  const fs::path group = options_.memory_groups / GroupNameOf(options_.state, "measuring-7");
  MakeControlGroup(options_.memory_groups, group.filename());
  job_.memory = 2'000'000'000;
  const auto measured = Measure(kMeasured);
  ASSERT_TRUE(measured) << measured.error().message;
  EXPECT_EQ(TextIn(group / "memory.max"), "2000000000");
  EXPECT_THAT(TextIn(group / "cgroup.procs"), testing::EndsWith("00")) << "who tried, and the trainer";
}

TEST_F(MeasureModelTest, WhatTheKernelEndsForWantOfMemoryIsSaidToBeThat) {
  options_.memory_groups = folder_.path() / "groups";
  const fs::path group = options_.memory_groups / GroupNameOf(options_.state, "measuring-7");
  MakeControlGroup(options_.memory_groups, group.filename());
  job_.memory = 2'000'000'000;
  const auto measured = Measure("echo 'oom_kill 1' >" + (group / "memory.events").string() + "; kill -9 $$");
  ASSERT_FALSE(measured);
  EXPECT_THAT(measured.error().message, HasSubstr("out of memory: the kernel ended its trainer"));
}

TEST_F(MeasureModelTest, OneThatHoldsTooMuchIsKilled) {
  job_.memory = 200'000'000;
  // Shared memory, which no limit of the process counts.
  const auto measured = Measure(
      "exec python3 -c 'import mmap, time; held = mmap.mmap(-1, 300 << 20); "
      "[held.write(bytes(1 << 20)) for _ in range(300)]; "
      "time.sleep(3600)' >&2");
  ASSERT_FALSE(measured);
  EXPECT_THAT(measured.error().message, HasSubstr("the limit of the job is 200000000 bytes"));
}

TEST_F(MeasureModelTest, OneThatHangsIsKilled) {
  options_.hang_limit = 0s;
  const auto measured = Measure("while :; do sleep 0.01; done");
  ASSERT_FALSE(measured);
  EXPECT_THAT(measured.error().message, HasSubstr("did nothing for 0 s and was killed"));
}

}  // namespace
}  // namespace tandem::jobs
