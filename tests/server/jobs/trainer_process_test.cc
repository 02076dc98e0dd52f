// Real processes in the place of trainers: scripts that say, do and fail as they like.

#include "server/jobs/trainer_process.h"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "colocation/serving_sign.h"
#include "profiler/machine.h"
#include "tests/fakes/eventually.h"
#include "tests/fakes/forbid_calls.h"

namespace tandem::jobs {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class TrainerProcessTest : public testing::Test {
 protected:
  TrainerProcessTest() : folder_(fs::temp_directory_path() / ("tandem-process-" + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
    fs::create_directory(folder_);
  }
  ~TrainerProcessTest() override { fs::remove_all(folder_); }

  Result<std::unique_ptr<TrainerProcess>> Start(const std::string& script, std::vector<int> cores = {}, int sign = -1) {
    const fs::path program = folder_ / "trainer";
    std::ofstream(program) << "#!/bin/bash\n" << script << "\n";
    fs::permissions(program, fs::perms::owner_all);
    return TrainerProcess::Start({.program = program,
                                  .run_file = folder_ / "run.json",
                                  .folder = folder_,
                                  .sign = sign,
                                  .cores = std::move(cores)});
  }
  // Waits for its end; all that it told.
  static std::pair<TrainerExit, std::vector<TrainerEvent>> Finish(TrainerProcess& process) {
    std::vector<TrainerEvent> events;
    for (int i = 0; i < 6000; ++i) {
      const auto exit = process.Poll();
      for (TrainerEvent& event : process.ReadEvents()) events.push_back(std::move(event));
      if (exit) return {*exit, events};
      std::this_thread::sleep_for(5ms);
    }
    ADD_FAILURE() << "it does not end";
    return {};
  }
  [[nodiscard]] std::string Log() const { return LogTail(folder_, 10'000); }

  const fs::path folder_;
};

TEST_F(TrainerProcessTest, HearsWhatItSays) {
  auto process = Start(R"(echo '{"event":"skipped","file":"a","why":"b"}' >&3
echo 'a line for people'
exit 3)");
  ASSERT_TRUE(process) << process.error().message;
  const auto [exit, events] = Finish(**process);
  EXPECT_EQ(exit.code, 3);
  EXPECT_EQ(exit.Words(), "exit code 3");
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(std::get<SkippedEvent>(events[0]).why, "b");
  EXPECT_EQ(Log(), "a line for people\n");
}

TEST_F(TrainerProcessTest, GarbageIsCountedAndPassedOver) {
  auto process = Start(R"(head -c 300000 /dev/zero | tr '\0' x >&3
echo >&3
echo 'nonsense' >&3
echo '{"event":"skipped","file":"a","why":"after"}' >&3
printf 'half a line' >&3)");
  ASSERT_TRUE(process);
  const auto [exit, events] = Finish(**process);
  EXPECT_TRUE(exit.clean());
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(std::get<SkippedEvent>(events[0]).why, "after");
  EXPECT_EQ((*process)->bad_lines(), 2U);
}

TEST_F(TrainerProcessTest, LivesInACleanRoom) {
  ::setenv("TANDEM_TEST_SECRET", "x", 1);
  auto process =
      Start("env | cut -d= -f1 | sort | xargs; echo \"$PWD\"; ls /proc/self/fd | wc -l; cat /proc/self/oom_score_adj");
  ASSERT_TRUE(process);
  Finish(**process);
  const std::string log = Log();
  EXPECT_EQ(log.find("SECRET"), std::string::npos) << log;
  EXPECT_EQ(log.find("HOME"), std::string::npos) << log;
  EXPECT_NE(log.find(folder_.string()), std::string::npos) << log;
  EXPECT_NE(log.find("1000"), std::string::npos) << log;
}

TEST_F(TrainerProcessTest, HasTheSignWhereItIsShownOne) {
  const char* const tells = "[ -e /proc/self/fd/7 ] && echo shown || echo alone; [ -e /proc/self/fd/8 ] && echo more";
  auto alone = Start(tells);
  ASSERT_TRUE(alone);
  Finish(**alone);
  EXPECT_EQ(Log(), "alone\n");
  const auto sign = ServingSign::Create().value();
  auto beside = Start(tells, {}, sign->fd());
  ASSERT_TRUE(beside);
  Finish(**beside);
  EXPECT_EQ(Log(), "alone\nshown\n");
}

TEST_F(TrainerProcessTest, IsAskedToEndAndKilledWithItsChildren) {
  auto process = Start(
      "trap 'exit 5' TERM; echo '{\"event\":\"skipped\",\"file\":\"\",\"why\":\"ready\"}' >&3; while :; do sleep 0.01; "
      "done");
  ASSERT_TRUE(process);
  while ((*process)->ReadEvents().empty()) std::this_thread::sleep_for(5ms);
  (*process)->Interrupt();
  EXPECT_EQ(Finish(**process).first.code, 5);

  auto stubborn = Start("trap '' TERM; sleep 1000 & echo $! > child; while :; do sleep 0.01; done");
  ASSERT_TRUE(stubborn);
  pid_t child = 0;
  while (child == 0) std::ifstream(folder_ / "child") >> child;
  (*stubborn)->Kill();
  EXPECT_EQ(Finish(**stubborn).first.signal, SIGKILL);
  // It is nobody's child any more, and whoever takes over may be slow to bury it.
  const auto gone = [&] {
    std::string state;
    std::ifstream status("/proc/" + std::to_string(child) + "/stat");
    for (int i = 0; i < 3 && status >> state;) ++i;
    return state.empty() || state == "Z";
  };
  for (int i = 0; i < 6000 && !gone(); ++i) std::this_thread::sleep_for(5ms);
  EXPECT_TRUE(gone());
}

TEST_F(TrainerProcessTest, EndsWithItsOwner) {
  pid_t pid = 0;
  {
    auto process = Start("while :; do sleep 0.01; done");
    ASSERT_TRUE(process);
    pid = (*process)->pid();
    EXPECT_EQ(::kill(pid, 0), 0);
  }
  EXPECT_NE(::kill(pid, 0), 0);
}

TEST_F(TrainerProcessTest, TellsWhetherTheKernelPutsItBehindTheServer) {
  const std::string ready = "echo '{\"event\":\"skipped\",\"file\":\"\",\"why\":\"ready\"}' >&3; sleep 1000";
  const auto class_of = [](TrainerProcess& process) {
    while (process.ReadEvents().empty()) std::this_thread::sleep_for(5ms);
    return ::sched_getscheduler(process.pid());
  };
  auto usual = Start(ready);
  ASSERT_TRUE(usual);
  EXPECT_TRUE((*usual)->yields());
  EXPECT_EQ(class_of(**usual), SCHED_IDLE);

  std::thread([&] {
    ASSERT_TRUE(ForbidCalls({SYS_sched_setscheduler}));
    auto forbidden = Start(ready);
    ASSERT_TRUE(forbidden);
    EXPECT_FALSE((*forbidden)->yields());
    EXPECT_EQ(class_of(**forbidden), SCHED_OTHER);
  }).join();
}

TEST_F(TrainerProcessTest, ItsNumberIsNobodyElsesForAsLongAsItIsThere) {
  auto process = Start("exit 3");
  ASSERT_TRUE(process);
  const pid_t pid = (*process)->pid();
  EXPECT_EQ(Finish(**process).first.code, 3);
  EXPECT_EQ(::kill(pid, 0), 0) << "it has ended, and keeps its number";
  (*process)->End();
  EXPECT_EQ((*process)->Poll()->code, 3) << "as it ended by itself";
  EXPECT_EQ(::kill(pid, 0), 0);
  process->reset();
  EXPECT_NE(::kill(pid, 0), 0);
}

TEST_F(TrainerProcessTest, TellsWhenItMayNotBeKilled) {
  std::thread([&] {
    auto process = Start("while ! [ -e end ]; do sleep 0.01; done");
    ASSERT_TRUE(process);
    ASSERT_TRUE(ForbidCalls({SYS_kill}));
    EXPECT_FALSE((*process)->Kill());
    std::ofstream(folder_ / "end").put('x');
    EXPECT_TRUE(Finish(**process).first.clean());
    EXPECT_TRUE((*process)->Kill()) << "there is nobody to be killed";
  }).join();
}

TEST_F(TrainerProcessTest, KeepsToItsCoresOrTellsWhyNot) {
  const std::vector<int> cores = AllowedCoreNumbers();
  auto kept = Start("taskset -pc $$", {cores.back()});
  ASSERT_TRUE(kept);
  EXPECT_EQ((*kept)->unpinned(), "");
  EXPECT_TRUE(Finish(**kept).first.clean());
  EXPECT_TRUE(Log().ends_with(": " + std::to_string(cores.back()) + "\n")) << Log();

  auto unpinned = Start("exit 0", {CPU_SETSIZE - 1});  // Nobody has that one.
  ASSERT_TRUE(unpinned);
  EXPECT_EQ((*unpinned)->unpinned(), "Invalid argument");
  EXPECT_TRUE(Finish(**unpinned).first.clean()) << "it runs all the same";
}

TEST_F(TrainerProcessTest, TellsWhatCpuTimeItHasUsed) {
  auto process = Start("while :; do :; done");
  ASSERT_TRUE(process);
  const auto before = (*process)->CpuTime();
  EXPECT_TRUE(Eventually([&] { return (*process)->CpuTime() > before + 50ms; }));
}

TEST_F(TrainerProcessTest, AProgramThatIsNotThereIsNamed) {
  const auto process = TrainerProcess::Start({.program = folder_ / "nobody", .run_file = "", .folder = folder_});
  ASSERT_FALSE(process);
  EXPECT_NE(process.error().message.find("nobody"), std::string::npos) << process.error().message;
}

}  // namespace
}  // namespace tandem::jobs
