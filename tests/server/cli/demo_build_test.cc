#include "server/cli/demo_build.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

namespace tandem::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

bool Until(const std::function<bool()>& condition) {
  for (int i = 0; i < 6000 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return condition();
}

class TrainerBuildTest : public ::testing::Test {
 protected:
  TrainerBuildTest() {
    std::string name = (std::filesystem::temp_directory_path() / "demo-build-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    folder_ = name;
  }
  ~TrainerBuildTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<TrainerBuild> Run(const std::string& script) {
    auto build = TrainerBuild::Start({"/bin/sh", "-c", "cd '" + folder_.string() + "'; " + script});
    EXPECT_TRUE(build) << build.error().message;
    return *std::move(build);
  }
  [[nodiscard]] std::string Read(const char* file) const {
    std::ifstream in(folder_ / file);
    std::string text;
    std::getline(in, text);
    return text;
  }

  std::filesystem::path folder_;
};

TEST(ReadBuildSteps, ReadsWhatNinjaPrints) {
  EXPECT_EQ(ReadBuildSteps("[12/61] Building CXX object a.o"), (BuildSteps{.done = 12, .total = 61}));
  EXPECT_EQ(ReadBuildSteps("[0/1]"), (BuildSteps{.done = 0, .total = 1}));
  for (const char* line : {"", "[", "[1", "[1/", "[1/2", "[/2] x", "[a/2] x", "[3/2] x", "[-1/2] x", " [1/2] x",
                           "[99999999999/2] x", "FAILED: [1/2]"}) {
    EXPECT_FALSE(ReadBuildSteps(line)) << line;
  }
}

TEST_F(TrainerBuildTest, TellsHowFarItIsAndThatItIsDone) {
  const auto build = Run("echo '[1/3] a'; echo '[2/3] b'; echo other; while [ ! -e go ]; do sleep 0.02; done; exit 0");
  ASSERT_TRUE(Until([&] {
    build->Look();
    return build->steps() == BuildSteps{.done = 2, .total = 3};
  }));
  EXPECT_TRUE(build->has_spoken());
  EXPECT_FALSE(build->ended());
  std::ofstream(folder_ / "go").flush();
  ASSERT_TRUE(Until([&] {
    build->Look();
    return build->ended();
  }));
  EXPECT_TRUE(build->succeeded());
}

TEST_F(TrainerBuildTest, AFailureIsToldInItsOwnWords) {
  const auto build =
      Run("echo 'FAILED: a.o'; echo 'tandem: error: the build failed' >&2; echo '  It is in x.log.' >&2; exit 3");
  ASSERT_TRUE(Until([&] {
    build->Look();
    return build->ended();
  }));
  EXPECT_FALSE(build->succeeded());
  EXPECT_EQ(build->Problem(), "the build failed\n  It is in x.log.");
}

TEST_F(TrainerBuildTest, AFailureWithoutWordsHasAnExitCode) {
  const auto build = Run("exit 3");
  ASSERT_TRUE(Until([&] {
    build->Look();
    return build->ended();
  }));
  EXPECT_EQ(build->Problem(), "exit code 3");
  EXPECT_FALSE(build->has_spoken());
}

TEST_F(TrainerBuildTest, WhatCannotBeRunIsSaidAtOnce) {
  const auto build = TrainerBuild::Start({"/no/such/launcher", "build"});
  ASSERT_FALSE(build);
  EXPECT_THAT(build.error().message, HasSubstr("/no/such/launcher"));
}

TEST_F(TrainerBuildTest, StandsBehindEverybodyElse) {
  const auto build = Run("echo $$ >pid.new; mv pid.new pid; while :; do sleep 0.02; done");
  ASSERT_TRUE(Until([&] { return !Read("pid").empty(); }));
  EXPECT_EQ(::sched_getscheduler(std::stoi(Read("pid"))), SCHED_IDLE);
}

TEST_F(TrainerBuildTest, IsEndedWithAllThatItStarted) {
  // The inner one stands for a compiler.
  auto build = Run("(while :; do sleep 0.02; done) & echo $! >pid.new; mv pid.new pid; wait");
  ASSERT_TRUE(Until([&] { return !Read("pid").empty(); }));
  const int inner = std::stoi(Read("pid"));
  ASSERT_EQ(::kill(inner, 0), 0);
  build.reset();
  // It is a zombie until whoever inherited it looks.
  EXPECT_TRUE(Until([&] {
    std::ifstream status("/proc/" + std::to_string(inner) + "/stat");
    std::string text;
    return !std::getline(status, text) || text.find(") Z ") != std::string::npos;
  }));
}

}  // namespace
}  // namespace tandem::cli
