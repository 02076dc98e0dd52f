#include "server/jobs/machine_watch.h"

#include <functional>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include "profiler/machine.h"
#include "server/log/log.h"
#include "tests/fakes/stoppable_child.h"

namespace tandem::jobs {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class MachineWatchTest : public ::testing::Test {
 protected:
  MachineWatchTest() { SetUpLog(LogLevel::kInfo, LogFormat::kText); }

  // What a look has to say.
  static std::string Told(MachineWatch& watch, const ArbiterState& state) {
    ::testing::internal::CaptureStderr();
    watch.Look(state, MonotonicTime{});
    EXPECT_TRUE(FlushLog(1min));
    return ::testing::internal::GetCapturedStderr();
  }
  static ArbiterState Limited(std::optional<std::chrono::nanoseconds> quota) {
    ArbiterState state;
    state.quotas.push_back({.group = "/g", .limit = {}});
    if (quota) state.quotas[0].limit = CpuLimit{.quota = *quota, .period = 100ms};
    return state;
  }
  static void KeepTo(int process, const std::vector<int>& cores) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int core : cores) CPU_SET(core, &set);
    ASSERT_EQ(::sched_setaffinity(process, sizeof set, &set), 0);
  }
};

TEST_F(MachineWatchTest, LooksOnceASecond) {
  MachineWatch watch({});
  const MonotonicTime now(1h);
  EXPECT_TRUE(watch.IsDue(now));
  watch.Look({}, now);
  EXPECT_FALSE(watch.IsDue(now + 999ms));
  EXPECT_TRUE(watch.IsDue(now + 1s));
}

TEST_F(MachineWatchTest, TellsOfALimitThatIsSetChangedAndLifted) {
  MachineWatch watch(Limited(80ms));
  EXPECT_EQ(Told(watch, Limited(80ms)), "") << "it was there at the start";
  EXPECT_THAT(Told(watch, Limited(50ms)), HasSubstr("CPU limit changed group=/g before=0.8 now=0.5"));
  EXPECT_EQ(Told(watch, Limited(50ms)), "");
  EXPECT_THAT(Told(watch, Limited({})), HasSubstr("CPU limit lifted group=/g before=0.5 now=none"));
  EXPECT_THAT(Told(watch, Limited(150ms)), HasSubstr("CPU limit set group=/g before=none now=1.5"));
}

TEST_F(MachineWatchTest, TellsOfCoresThatGoAndComeBack) {
  const std::vector<int> all = AllowedCoreNumbers();
  if (all.size() < 2) GTEST_SKIP() << "there is one core only";
  // A thread of its own: others keep their cores.
  std::thread([&] {
    MachineWatch watch({});
    EXPECT_EQ(Told(watch, {}), "");
    KeepTo(0, {all[0]});
    EXPECT_THAT(Told(watch, {}), HasSubstr(Format("cores of the server changed before={} now={}", CoreNumbersText(all),
                                                  CoreNumbersText(std::vector{all[0]}))));
    EXPECT_EQ(Told(watch, {}), "");
    KeepTo(0, all);
    EXPECT_THAT(Told(watch, {}), HasSubstr(Format("now={}", CoreNumbersText(all))));
  }).join();
}

TEST_F(MachineWatchTest, TellsOfTheCoresOfATrainer) {
  const std::vector<int> all = AllowedCoreNumbers();
  if (all.size() < 2) GTEST_SKIP() << "there is one core only";
  const StoppableChild child;
  ArbiterState state;
  state.trainers.push_back({.job = 7, .pid = child.pid()});
  MachineWatch watch(state);
  EXPECT_EQ(Told(watch, state), "") << "what it begins with is no change";
  KeepTo(child.pid(), {all[1]});
  EXPECT_THAT(Told(watch, state),
              HasSubstr(Format("cores of a trainer changed job=7 before={} now={}\n", CoreNumbersText(all), all[1])));
  const StoppableChild next;
  state.trainers[0].pid = next.pid();
  EXPECT_EQ(Told(watch, state), "") << "another has its own";
  EXPECT_EQ(Told(watch, {}), "");
}

}  // namespace
}  // namespace tandem::jobs
