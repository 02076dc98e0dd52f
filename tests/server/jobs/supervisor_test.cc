// Real processes in the place of trainers, a real store, and a clock that moves when it is told.

#include "server/jobs/supervisor.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "api/base/format.h"
#include "colocation/board_page.h"
#include "server/memory/memory_account.h"
#include "server/trainer/run_file.h"
#include "tests/server/jobs/fake_control_group.h"
#include "tests/server/jobs/store_fixture.h"

namespace tandem::jobs {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr const char* kPlan =
    R"(echo '{"event":"plan","first_step":0,"total_steps":9,"examples":1,"evaluation_examples":0,"parameters":1}' >&3
)";
constexpr const char* kFinished =
    R"(echo '{"event":"end","outcome":"finished","step":9,"code":"internal","message":""}' >&3)";

// A line of a script that writes so many bytes, as printf(1) has them, to its board.
std::string Scribble(const char* bytes, std::size_t offset) {
  return Format("printf '{}' | dd of=/proc/self/fd/4 conv=notrunc oflag=seek_bytes seek={} status=none\n", bytes,
                offset);
}
// One that has a trainer say that it waits.
std::string SayHeld() {
  return Scribble("\\1", offsetof(TrainerBoard::Page, held));
}

class SupervisorTest : public StoreTest {
 protected:
  SupervisorTest() {
    options_.state = state();
    options_.trainer = folder_.path() / "trainer";
    options_.rank = TrainerClass::kNormal;
    options_.attempts = 3;
    options_.first_backoff = 10s;
    options_.last_backoff = 60s;
    options_.hang_limit = 300s;
    Restart();
  }

  void Restart() {
    supervisor_.reset();
    Reopen();
    supervisor_ = std::make_unique<Supervisor>(options_, *store_, metrics_, clock_,
                                               [this](const auto&, const auto&) { ++succeeded_; });
    ASSERT_TRUE(supervisor_->Recover());
  }
  void TrainerIs(const std::string& script) {
    std::ofstream(options_.trainer) << "#!/bin/bash\n" << script << "\n";
    fs::permissions(options_.trainer, fs::perms::owner_all);
  }
  JobId Submit(const std::string& more = "") {
    const std::string spec =
        R"({"model":"m","data":{"kind":"synthetic","samples":10},"steps":9,"loss":"mse")" + more + "}";
    const JobId id = store_->Submit({.name = "a", .spec = spec, .model = "m"}).value().job.id;
    fs::create_directories(JobFolder::Of(options_.state, id).path);
    return id;
  }
  JobRecord Job(JobId id) { return store_->Get(id).value(); }
  // What was told of it in events of that kind.
  std::vector<std::string> Events(JobId id, const std::string& kind) {
    const std::vector<JobEvent> events = store_->EventsAfter(id, 0, 1000).value();
    std::vector<std::string> bodies;
    for (const JobEvent& event : events) {
      if (event.kind == kind) bodies.push_back(event.body);
    }
    return bodies;
  }
  // Turns until it is so; the clock stands still meanwhile.
  void TurnUntil(const std::function<bool()>& so) {
    for (int i = 0; i < 12'000 && !so(); ++i) {
      supervisor_->Turn();
      std::this_thread::sleep_for(5ms);
    }
    ASSERT_TRUE(so());
  }
  void TurnUntil(JobId id, JobState state) {
    TurnUntil([&] { return Job(id).state == state; });
  }
  // As often as it does while a trainer runs.
  void TurnFor(std::chrono::seconds time) {
    for (std::chrono::nanoseconds passed{0}; passed < time; passed += 200ms) {
      clock_.Advance(200ms);
      supervisor_->Turn();
    }
  }
  // Nothing comes of it however often it turns.
  void TurnInVain(JobId id) {
    const std::int64_t attempts = Job(id).attempts;
    for (int i = 0; i < 10; ++i) supervisor_->Turn();
    EXPECT_EQ(Job(id).attempts, attempts);
    EXPECT_EQ(Job(id).state, JobState::kQueued);
  }

  // Of 100 bytes, of which each job needs so many.
  void ShareMemory(std::uint64_t each) {
    account_ = MemoryAccount::Create(BudgetOf({.bytes = 100}, {.device = 1000}), 1).value();
    options_.memory = account_.get();
    options_.need = [each](const TrainingJob&, const fs::path&) -> Result<JobNeed> {
      return JobNeed{.persistent = each, .bounded = true};
    };
    options_.running = 4;
    Restart();
  }
  std::string Reason(JobId id) { return supervisor_->Explained(Job(id)).reason; }

  std::shared_ptr<MemoryAccount> account_;
  JobOptions options_;
  JobMetrics metrics_{clock_};
  int succeeded_ = 0;
  std::unique_ptr<Supervisor> supervisor_;
};

TEST_F(SupervisorTest, TriesAgainAfterABackOffThatNoTimeOfDayChanges) {
  TrainerIs("exit 3");
  const JobId id = Submit();
  TurnUntil([&] { return Job(id).state == JobState::kQueued && Job(id).retries == 1; });
  EXPECT_THAT(Job(id).reason, HasSubstr("exit code 3"));
  ASSERT_TRUE(Job(id).next_attempt_at);
  EXPECT_EQ(*Job(id).next_attempt_at - clock_.WallNow().time_since_epoch() / 1ms, 10'000);
  EXPECT_EQ(supervisor_->UntilDue(), 10s);

  clock_.JumpWall(24h);
  TurnInVain(id);
  clock_.JumpWall(-48h);
  EXPECT_EQ(supervisor_->UntilDue(), 10s);
  clock_.Advance(10s - 1ms);
  TurnInVain(id);
  clock_.Advance(1ms);
  TurnUntil([&] { return Job(id).retries == 2; });
  EXPECT_EQ(supervisor_->UntilDue(), 20s);
  clock_.Advance(20s);
  TurnUntil(id, JobState::kFailed);
  EXPECT_THAT(Job(id).reason, HasSubstr("exit code 3 (3 attempts)"));
}

TEST_F(SupervisorTest, AJobThatGetsOnWaitsNoLongerThanTheFirstTime) {
  options_.attempts = 1000;
  TrainerIs(
      std::string(kPlan) +
      R"(echo '{"event":"checkpoint","step":1,"file":"step-1.checkpoint","bytes":1,"checksum":1,"problem":""}' >&3; exit 3)");
  const JobId id = Submit();
  for (int failures = 1; failures <= 3; ++failures) {
    TurnUntil([&] { return Job(id).retries == failures; });
    EXPECT_EQ(supervisor_->UntilDue(), 10s);
    clock_.Advance(10s);
  }
}

TEST_F(SupervisorTest, StepsThatALostTrainerDidNotTellOfAreCounted) {
  // Its word of step 2 was the last before it wrote a checkpoint; of the second checkpoint it told nobody.
  TrainerIs("if [ -e " + (folder_.path() / "lost").string() + R"( ]; then
  echo '{"event":"plan","first_step":6,"total_steps":9,"examples":1,"evaluation_examples":0,"parameters":1}' >&3
  )" + kFinished +
            R"(
  exit 0
fi
touch )" + (folder_.path() / "lost").string() +
            "\n" + kPlan +
            R"(echo '{"event":"step","step":2,"epoch":0,"loss":1.5,"learning_rate":0.1}' >&3
echo '{"event":"checkpoint","step":4,"file":"step-4.checkpoint","bytes":1,"checksum":1,"problem":""}' >&3
exit 3)");
  const JobId id = Submit();
  TurnUntil([&] { return Job(id).retries == 1; });
  EXPECT_EQ(metrics_.Read().jobs.at(0).iterations, 4);
  clock_.Advance(10s);
  TurnUntil(id, JobState::kSucceeded);
  EXPECT_EQ(metrics_.Read().jobs.at(0).iterations, 9);
}

TEST_F(SupervisorTest, AJobThatCannotBeBegunIsNotForgotten) {
  const JobId id = Submit();
  fs::remove_all(JobFolder::Of(options_.state, id).path);
  supervisor_->Turn();
  EXPECT_EQ(Job(id).retries, 1);
  ASSERT_TRUE(supervisor_->UntilDue());
  EXPECT_LE(*supervisor_->UntilDue(), 10s);
  supervisor_->Turn();
  EXPECT_EQ(supervisor_->UntilDue(), 10s);
}

TEST_F(SupervisorTest, AServerThatComesBackWaitsForTheRest) {
  TrainerIs("exit 3");
  const JobId id = Submit();
  TurnUntil([&] { return Job(id).retries == 1; });
  clock_.Advance(4s);
  Restart();
  TurnInVain(id);
  EXPECT_EQ(supervisor_->UntilDue(), 6s);
}

TEST_F(SupervisorTest, AJobWaitsForMemoryAndSaysForWhom) {
  TrainerIs(std::string(kPlan) + "while :; do sleep 0.01; done");
  ShareMemory(60);
  const JobId first = Submit();
  const JobId second = Submit();
  TurnUntil(first, JobState::kRunning);
  TurnInVain(second);
  EXPECT_THAT(Reason(second), HasSubstr("needs P 60 B + E 0 B; free 40 B; would fit when job 1 ends"));
  EXPECT_EQ(Reason(first), "");
  ASSERT_TRUE(supervisor_->Cancel(first));
  TurnUntil(second, JobState::kRunning);
  EXPECT_EQ(Reason(second), "");
}

TEST_F(SupervisorTest, MemoryIsGivenBackHoweverATrainerEnds) {
  options_.attempts = 1;
  TrainerIs(std::string(kPlan) + kFinished);
  ShareMemory(60);
  const JobId well = Submit();
  TurnUntil(well, JobState::kSucceeded);
  TrainerIs("exit 3");
  const JobId badly = Submit();
  TurnUntil(badly, JobState::kFailed);
  options_.trainer = "/nowhere/trainer";
  const JobId never = Submit();
  TurnUntil(never, JobState::kFailed);
  EXPECT_EQ(account_->Map().use.total(), 0U);
  EXPECT_TRUE(account_->Map().waiting.empty());
}

TEST_F(SupervisorTest, WhoIsCancelledOrPausedWaitsNoMore) {
  TrainerIs(std::string(kPlan) + "while :; do sleep 0.01; done");
  ShareMemory(60);
  const JobId first = Submit();
  TurnUntil(first, JobState::kRunning);
  const JobId second = Submit();
  const JobId third = Submit();
  TurnInVain(second);
  EXPECT_EQ(account_->Map().waiting.size(), 2U);
  ASSERT_TRUE(supervisor_->Cancel(second));
  ASSERT_TRUE(supervisor_->Pause(third));
  EXPECT_TRUE(account_->Map().waiting.empty());
  ASSERT_TRUE(supervisor_->Resume(third));
  TurnInVain(third);
  EXPECT_EQ(account_->Map().waiting.size(), 1U);
  ASSERT_TRUE(supervisor_->Pause(first));
  EXPECT_THAT(Reason(third), HasSubstr("when paused jobs end"));
  ASSERT_TRUE(supervisor_->Resume(first));
  EXPECT_THAT(Reason(third), HasSubstr("would fit when job 1 ends"));
}

TEST_F(SupervisorTest, ABudgetThatFallsBeginsNobodyAndOneThatRisesIsNews) {
  TrainerIs(std::string(kPlan) + "while :; do sleep 0.01; done");
  ShareMemory(60);
  account_->SetBudget(BudgetOf({.bytes = 50}, {.device = 1000}));
  const JobId id = Submit();
  TurnInVain(id);
  EXPECT_THAT(Reason(id), HasSubstr("the budget of 50 B leaves no room for it at all"));
  EXPECT_THAT(supervisor_->fds(), testing::Contains(account_->news_fd()));
  account_->SetBudget(BudgetOf({.bytes = 100}, {.device = 1000}));
  TurnUntil(id, JobState::kRunning);
}

TEST_F(SupervisorTest, OnlyMonotonicTimeMakesATrainerHang) {
  TrainerIs(std::string(kPlan) + "while :; do sleep 0.01; done");
  const JobId id = Submit();
  TurnUntil(id, JobState::kRunning);
  clock_.JumpWall(24h);
  for (int i = 0; i < 10; ++i) supervisor_->Turn();
  EXPECT_EQ(Job(id).state, JobState::kRunning);
  TurnFor(299s);
  EXPECT_EQ(Job(id).state, JobState::kRunning);
  TurnFor(1s);
  TurnUntil([&] { return Job(id).retries == 1; });
  EXPECT_THAT(Job(id).reason, HasSubstr("did nothing for 300 s"));
}

TEST_F(SupervisorTest, AMachineThatStoodStillHasNoTrainerThatHangs) {
  TrainerIs(std::string(kPlan) + "while :; do sleep 0.01; done");
  const JobId id = Submit();
  TurnUntil(id, JobState::kRunning);
  for (int i = 0; i < 10; ++i) {
    clock_.Advance(24h);
    supervisor_->Turn();
    std::this_thread::sleep_for(20ms);  // If it were killed, this would be seen by the next turn.
  }
  EXPECT_EQ(Job(id).state, JobState::kRunning);
  EXPECT_EQ(Job(id).attempts, 1);
}

TEST_F(SupervisorTest, TheTrainersOfADeterministicJobHaveTheSameThreadsOnEveryServer) {
  TrainerIs(std::string(kPlan) + "exit 3");
  options_.running = 3;
  options_.threads = 3;
  options_.fixed_threads = 4;
  Restart();
  const JobId steady = Submit(R"(,"deterministic":true)");
  const JobId told = Submit(R"(,"deterministic":true,"threads":7)");
  const JobId other = Submit();
  const auto threads = [&](std::int64_t failures) {
    std::vector<int> found;
    for (const JobId id : {steady, told, other}) {
      TurnUntil([&] { return Job(id).retries == failures; });
      found.push_back(ReadRunFile(JobFolder::Of(options_.state, id).path / "run.json").value().threads);
    }
    return found;
  };
  EXPECT_THAT(threads(1), testing::ElementsAre(4, 7, 3));
  options_.threads = 1;
  options_.fixed_threads = 1;
  Restart();
  clock_.Advance(10s);
  EXPECT_THAT(threads(2), testing::ElementsAre(4, 7, 1));
}

TEST_F(SupervisorTest, WhatAJobBeganFromIsKnownToTheNextServer) {
  TrainerIs(
      std::string(kPlan) +
      R"(echo '{"event":"end","outcome":"finished","step":9,"baseline":0.25,"best":0.5,"code":"internal","message":""}' >&3)");
  const JobId id = Submit();
  TurnUntil(id, JobState::kSucceeded);
  Restart();
  EXPECT_EQ(Job(id).baseline, 0.25);
  EXPECT_EQ(Job(id).progress.best_metric, 0.5);
}

TEST_F(SupervisorTest, WhatATrainerTellsOfItsMemoryIsKept) {
  TrainerIs(std::string(R"(echo '{"event":"estimate","weights":40,"optimizer":30,"data":20,"framework":10,)") +
            R"("ephemeral":50,"peak":"Conv","batch":8}' >&3
)" + kPlan +
            R"(echo '{"event":"memory","persistent":80,"ephemeral":100}' >&3
)" + kFinished);
  const JobId id = Submit();
  EXPECT_EQ(Job(id).memory, "") << "nothing is known before";
  TurnUntil(id, JobState::kSucceeded);
  Restart();
  const std::string memory = Job(id).memory;
  for (const char* part : {R"("total":100)", R"("measured":{"ephemeral":100,"persistent":80})",
                           R"("error":{"ephemeral":-0.5,"persistent":0.25})"}) {
    EXPECT_THAT(memory, HasSubstr(part));
  }
  EXPECT_EQ(Events(id, "memory"), std::vector{memory});
  const auto totals = metrics_.Read().jobs;
  ASSERT_EQ(totals.size(), 1U);
  EXPECT_EQ(totals[0].persistent_error, 0.25);
  EXPECT_EQ(totals[0].ephemeral_error, -0.5);
}

TEST_F(SupervisorTest, ATrainerIsMovedIntoItsControlGroup) {
  options_.memory_groups = folder_.path() / "groups";
  const std::string group = GroupNameOf(options_.state, "job-1");
  MakeControlGroup(options_.memory_groups, group);
  TrainerIs("ulimit -d >limit\n" + std::string(kPlan) + kFinished);
  const JobId id = Submit(R"(,"memory":2000000000)");
  ASSERT_EQ(id, 1);
  TurnUntil(id, JobState::kSucceeded);
  EXPECT_EQ(TextIn(options_.memory_groups / group / "memory.max"), "2000000000");
  EXPECT_THAT(TextIn(options_.memory_groups / group / "cgroup.procs"), testing::EndsWith("00"))
      << "who tried, and the trainer";
  EXPECT_NE(TextIn(JobFolder::Of(options_.state, id).path / "limit"), "1953125\n");
}

TEST_F(SupervisorTest, WhereATrainerCannotMoveIntoItsControlGroupItIsBoundedByOtherMeans) {
  options_.memory_groups = folder_.path() / "groups";
  MakeClosedControlGroup(options_.memory_groups, GroupNameOf(options_.state, "job-1"));
  TrainerIs("ulimit -d >limit\n" + std::string(kPlan) + kFinished);
  const JobId id = Submit(R"(,"memory":2000000000)");
  ASSERT_EQ(id, 1);
  TurnUntil([&] { return HasEnded(Job(id).state) || Job(id).retries > 0; });
  EXPECT_EQ(Job(id).state, JobState::kSucceeded) << Job(id).reason;
  EXPECT_EQ(TextIn(JobFolder::Of(options_.state, id).path / "limit"), "1953125\n");  // In kilobytes.
}

TEST_F(SupervisorTest, RecordsShowTheTimeOfDay) {
  TrainerIs(std::string(kPlan) + kFinished);
  clock_.JumpWall(24h * 365 * 50);
  const JobId id = Submit();
  TurnUntil(id, JobState::kSucceeded);
  EXPECT_EQ(Job(id).ended_at, clock_.WallNow().time_since_epoch() / 1ms);
}

// Another program that holds the database is, for the store, a disk that takes nothing.
class Blocked {
 public:
  explicit Blocked(const fs::path& file) {
    EXPECT_EQ(sqlite3_open(file.c_str(), &db_), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(db_, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  }
  ~Blocked() { sqlite3_close(db_); }
  Blocked(const Blocked&) = delete;
  Blocked& operator=(const Blocked&) = delete;

 private:
  sqlite3* db_ = nullptr;
};

TEST_F(SupervisorTest, WhatCannotBeWrittenDownNowIsWrittenDownLater) {
  const fs::path go = folder_.path() / "go";
  TrainerIs(std::string(kPlan) + "while [[ ! -e " + go.string() + " ]]; do sleep 0.01; done\n" + kFinished);
  const JobId id = Submit();
  TurnUntil(id, JobState::kRunning);
  {
    const Blocked blocked(file());
    std::ofstream(go) << "go";
    TurnUntil([&] { return supervisor_->drained(); });
    EXPECT_EQ(Job(id).state, JobState::kRunning);
    EXPECT_EQ(supervisor_->UntilDue(), 1s);
  }
  EXPECT_EQ(succeeded_, 0);
  clock_.Advance(1s);
  TurnUntil(id, JobState::kSucceeded);
  EXPECT_EQ(succeeded_, 1);
  EXPECT_EQ(Job(id).attempts, 1);
}

TEST_F(SupervisorTest, AJobThatCannotBeAdmittedNowIsBegunLater) {
  TrainerIs(std::string(kPlan) + kFinished);
  const JobId id = Submit();
  {
    const Blocked blocked(file());
    supervisor_->Turn();
    EXPECT_TRUE(supervisor_->drained());
    EXPECT_EQ(supervisor_->UntilDue(), 1s);
  }
  TurnUntil(id, JobState::kSucceeded);
  EXPECT_EQ(Job(id).attempts, 1);
}

class DisobedienceTest : public SupervisorTest {
 protected:
  // A job whose trainer runs, and has written its process id down.
  JobId Begin(const std::string& script) {
    TrainerIs("echo $$ > pid\n" + script);
    const JobId id = Submit();
    TurnUntil(id, JobState::kRunning);
    return id;
  }
  // Whether its trainer is stopped by signal.
  bool Stopped(JobId id) {
    pid_t pid = 0;
    std::ifstream(JobFolder::Of(options_.state, id).path / "pid") >> pid;
    std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    std::getline(in, text);
    const auto name = text.rfind(')');
    return name != std::string::npos && text.size() > name + 2 && text[name + 2] == 'T';
  }
};

TEST_F(DisobedienceTest, ATrainerThatDoesNotWaitWhenItIsToldToIsStopped) {
  const JobId id = Begin(std::string(kPlan) + "while :; do sleep 0.01; done");
  ASSERT_TRUE(supervisor_->Pause(id));
  clock_.Advance(24h);
  supervisor_->Turn();
  TurnFor(HoldWatch::kBound - 2s);
  EXPECT_FALSE(Stopped(id)) << "while the machine stood still it could not obey";
  TurnFor(2s);
  TurnUntil([&] { return Stopped(id); });
  TurnFor(2 * 300s);
  EXPECT_EQ(Job(id).state, JobState::kPaused) << "it does not hang, it is stopped";
  EXPECT_FALSE(supervisor_->drained());
  EXPECT_THAT(Events(id, "hold_ignored"), testing::ElementsAre(R"({"after_seconds":30,"killed":false})"));
  ASSERT_TRUE(supervisor_->Resume(id));
  TurnUntil([&] { return !Stopped(id); });
}

TEST_F(DisobedienceTest, ATrainerThatDoesNotWaitTheSecondTimeIsKilledAndFollowedByAnother) {
  const JobId id = Begin(std::string(kPlan) + "while :; do sleep 0.01; done");
  ASSERT_TRUE(supervisor_->Pause(id));
  TurnFor(HoldWatch::kBound);
  TurnUntil([&] { return Stopped(id); });
  ASSERT_TRUE(supervisor_->Resume(id));
  ASSERT_TRUE(supervisor_->Pause(id));
  TurnFor(HoldWatch::kBound - 1s);
  EXPECT_EQ(Events(id, "hold_ignored").size(), 1U) << "it has as much time as before";
  TurnFor(1s);
  TurnUntil([&] { return supervisor_->drained(); });
  EXPECT_THAT(Events(id, "hold_ignored"),
              testing::ElementsAre(R"({"after_seconds":30,"killed":false})", R"({"after_seconds":30,"killed":true})"));
  ASSERT_EQ(Events(id, "trainer_lost").size(), 1U);
  EXPECT_THAT(Events(id, "trainer_lost")[0], HasSubstr("did not wait when it was told to, for the second time"));
  EXPECT_EQ(Job(id).state, JobState::kPaused) << "as it was told";
  ASSERT_TRUE(supervisor_->Resume(id));
  TurnUntil([&] { return Job(id).state == JobState::kRunning && Job(id).attempts == 2; });
}

TEST_F(DisobedienceTest, ATrainerThatSaysThatItWaitsAndComputesIsStopped) {
  const JobId id = Begin(SayHeld() + kPlan + "while :; do :; done");
  ASSERT_TRUE(supervisor_->Pause(id));
  TurnFor(HoldWatch::kBound);
  EXPECT_FALSE(Stopped(id)) << "it may be about to end what it does";
  TurnUntil([&] { return Stopped(id); });
  EXPECT_EQ(Events(id, "hold_ignored").size(), 1U);
}

TEST_F(DisobedienceTest, ATrainerThatSaysThatItWaitsHangsAllTheSame) {
  const JobId id = Begin(SayHeld() + kPlan + "exec sleep 1000");
  TurnFor(299s);
  EXPECT_EQ(Job(id).state, JobState::kRunning);
  TurnFor(1s);
  TurnUntil([&] { return Job(id).retries == 1; });
  EXPECT_THAT(Job(id).reason, HasSubstr("did nothing for 300 s"));
}

TEST_F(DisobedienceTest, ATrainerThatStaysBehindWhenItsJobIsResumedHangs) {
  const JobId id = Begin(SayHeld() + kPlan + "exec sleep 1000");
  ASSERT_TRUE(supervisor_->Pause(id));
  TurnFor(2 * 300s);
  EXPECT_EQ(Job(id).state, JobState::kPaused);
  EXPECT_FALSE(supervisor_->drained()) << "it waits, as it was told to";
  ASSERT_TRUE(supervisor_->Resume(id));
  TurnFor(299s);
  EXPECT_EQ(Job(id).state, JobState::kRunning) << "its silence counts from then on";
  TurnFor(1s);
  TurnUntil([&] { return Job(id).retries == 1; });
  EXPECT_THAT(Job(id).reason, HasSubstr("did nothing for 300 s"));
}

TEST_F(DisobedienceTest, OrdersThatATrainerCannotHaveObeyedAreNotCounted) {
  const auto counted = [this] {
    supervisor_->Turn();
    TurnFor(1s);
    const AcknowledgementTimes times = metrics_.Read().acknowledgements;
    return std::pair(std::accumulate(times.counts.begin(), times.counts.end(), std::uint64_t{0}), times.sum);
  };
  const std::size_t counts = offsetof(TrainerBoard::Page, acknowledged);
  const std::size_t sum = offsetof(TrainerBoard::Page, acknowledged_sum);
  const auto wait_for = [](const char* file) { return Format("while [[ ! -e {} ]]; do sleep 0.01; done\n", file); };
  const char* const most = R"(\377\377\377\377\377\377\377\377)";
  const char* const two = R"(\2\0\0\0\0\0\0\0)";
  const char* const one = R"(\1\0\0\0\0\0\0\0)";
  const JobId id =
      Begin(Scribble(most, counts) + kPlan + wait_for("long") + Scribble(two, counts) + Scribble(most, sum) +
            "touch told-long\n" + wait_for("true") + Scribble(two, sum) + "touch told-true\n" + wait_for("less") +
            Scribble(one, counts) + "touch told-less\nexec sleep 1000");
  const fs::path folder = JobFolder::Of(options_.state, id).path;
  const auto have_it_tell = [&](const std::string& what) {
    std::ofstream(folder / what) << "now";
    TurnUntil([&] { return fs::exists(folder / ("told-" + what)); });
  };
  ASSERT_TRUE(supervisor_->Pause(id));
  ASSERT_TRUE(supervisor_->Resume(id));
  EXPECT_EQ(counted(), std::pair(std::uint64_t{0}, 0ns)) << "there were two orders";
  have_it_tell("long");
  EXPECT_EQ(counted(), std::pair(std::uint64_t{0}, 0ns)) << "that is longer than it has lived";
  have_it_tell("true");
  EXPECT_EQ(counted(), std::pair(std::uint64_t{2}, 2ns));
  have_it_tell("less");
  EXPECT_EQ(counted(), std::pair(std::uint64_t{2}, 2ns)) << "nothing goes back";
}

TEST_F(DisobedienceTest, OrdersThatATrainerOverwritesAreGivenAnewAndToldOnce) {
  const std::size_t orders = offsetof(TrainerBoard::Page, orders);
  const std::string until_restored =
      Format("while [[ $(od -An -tu4 -j{} -N4 /proc/self/fd/4) -eq 2 ]]; do sleep 0.01; done\n", orders);
  TrainerIs(kPlan + Scribble("\\2\\0\\0\\0", orders) + until_restored + Scribble("\\2\\0\\0\\0", orders) +
            until_restored + kFinished);
  const JobId id = Submit();
  TurnUntil(id, JobState::kSucceeded);
  const auto told = Events(id, "board_overwritten");
  ASSERT_EQ(told.size(), 1U);
  EXPECT_THAT(told[0], HasSubstr(R"("orders":2},"given":{"version")"));
}

}  // namespace
}  // namespace tandem::jobs
