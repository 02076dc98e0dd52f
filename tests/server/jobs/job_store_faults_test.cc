// What the store does when the machine does not do its part: processes that are killed, files that are damaged, disks
// that are full or read-only.

#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/base/format.h"
#include "server/jobs/job_schema.h"
#include "server/jobs/job_store.h"
#include "tests/server/jobs/store_fixture.h"

namespace tandem::jobs {
namespace {

using testing::HasSubstr;

// What a child tells as soon as the store has told it.
struct Told {
  JobId job = 0;
  JobState state = JobState::kQueued;
};

// Works until it is killed.
[[noreturn]] void WorkForEver(const std::filesystem::path& state, int pipe) {
  const auto store = JobStore::Open(state, RealClock::Instance());
  if (!store) ::_exit(1);
  const auto tell = [&](JobId job, JobState reached) {
    const Told told{job, reached};
    if (::write(pipe, &told, sizeof(told)) != sizeof(told)) ::_exit(1);
  };
  while (true) {
    const auto job = (*store)->Submit({.name = "a", .spec = "{}"});
    if (!job) ::_exit(1);
    const JobId id = job->job.id;
    tell(id, JobState::kQueued);
    for (const JobAction action : {JobAction::kAdmit, JobAction::kStart, JobAction::kSucceed}) {
      const auto next = (*store)->Transition(id, action, {.progress = JobProgress{.step = id}});
      if (!next) ::_exit(1);
      tell(id, next->state);
      const std::array<SeriesPoint, 2> points = {{{1, 1.0}, {2, 2.0}}};
      if (!(*store)->AddSeriesPoints(id, "loss", points)) ::_exit(1);
      if (!(*store)->AddCheckpoint({.job = id, .step = 1, .path = "p", .bytes = 1, .checksum = "c"})) ::_exit(1);
    }
  }
}

TEST(JobStoreFaults, AfterKillEveryPromiseIsKeptAndNothingIsHalfDone) {
  const TestFolder folder;
  std::map<JobId, JobState> promised;
  for (int round = 0; round < 12; ++round) {
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) WorkForEver(folder.path(), pipe[1]);
    ::close(pipe[1]);
    Told told;
    int heard = 0;
    while (::read(pipe[0], &told, sizeof(told)) == sizeof(told)) {
      promised[told.job] = told.state;
      // Somewhere within the next transactions.
      if (++heard == 7 + round) {
        std::this_thread::sleep_for(std::chrono::microseconds(311 * round));
        ::kill(child, SIGKILL);
      }
    }
    ::close(pipe[0]);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && heard >= 7) << "the child gave up by itself";

    const auto store = JobStore::Open(folder.path(), RealClock::Instance());
    ASSERT_TRUE(store) << store.error().message;
    for (const auto& [id, state] : promised) {
      const auto job = (*store)->Get(id);
      ASSERT_TRUE(job) << job.error().message;
      EXPECT_GE(job->state, state) << "job " << id;
    }
    const JobPage page = (*store)->List({.limit = 1000}).value();
    for (const JobRecord& job : page.jobs) {
      EXPECT_EQ(job.progress.step, job.state == JobState::kQueued ? 0 : job.id);
      const auto events = (*store)->EventsAfter(job.id, 0, 100).value();
      ASSERT_EQ(events.size(), static_cast<std::size_t>(job.state == JobState::kSucceeded ? 3 : int(job.state)) + 1);
      EXPECT_THAT(events.back().body, HasSubstr(Format("\"to\":\"{}\"", JobStateName(job.state))));
    }
  }
}

class DamagedStoreTest : public StoreTest {
 protected:
  DamagedStoreTest() {
    for (int i = 0; i < 50; ++i) {
      const JobId id = Add();
      EXPECT_TRUE(store_->AddEvent(id, "log", "\"" + std::string(1000, 'x') + "\""));
    }
    store_.reset();
  }
  std::string OpenError() {
    const auto store = JobStore::Open(state(), clock_);
    return store ? "no error" : store.error().message;
  }
  void Overwrite(std::streamoff from, std::size_t bytes) {
    std::fstream stream(file(), std::ios::binary | std::ios::in | std::ios::out);
    stream.seekp(from);
    stream << std::string(bytes, '\xA5');
  }
};

TEST_F(DamagedStoreTest, AFileThatIsNoDatabaseIsRefusedWithWhatToDo) {
  Overwrite(0, 100);
  EXPECT_THAT(OpenError(), HasSubstr("the job database '" + file().string() + "' is damaged or no database"));
  EXPECT_THAT(OpenError(), HasSubstr("move '" + file().string() + "' away"));
}

TEST_F(DamagedStoreTest, DamageInTheMiddleIsFound) {
  Overwrite(4096 * 3, 4096 * 4);
  EXPECT_THAT(OpenError(), HasSubstr("is damaged"));
}

TEST_F(DamagedStoreTest, ALargeFileIsReadWholeOnlyWhenItWasNotClosed) {
  Overwrite(4096 * 3, 4096 * 4);
  EXPECT_TRUE(Database::Open(file(), /*quickly_read=*/4096));
  std::ofstream(file().string() + "-wal") << "";
  const auto found = Database::Open(file(), /*quickly_read=*/4096);
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, HasSubstr("is damaged"));
}

TEST_F(DamagedStoreTest, ATruncatedFileIsFound) {
  std::filesystem::resize_file(file(), std::filesystem::file_size(file()) / 2);
  EXPECT_THAT(OpenError(), HasSubstr("is damaged"));
}

TEST_F(DamagedStoreTest, MovedAwayAsToldTheServerBeginsAnew) {
  Overwrite(0, 100);
  EXPECT_NE(OpenError(), "no error");
  std::filesystem::rename(file(), folder_.path() / "away");
  EXPECT_EQ(OpenError(), "no error");
}

TEST_F(DamagedStoreTest, ADatabaseOfANewerProgramIsRefusedAndKept) {
  {
    const auto database = Database::Open(file()).value();
    ASSERT_TRUE(database->RunScript("PRAGMA user_version=99"));
  }
  EXPECT_THAT(OpenError(), HasSubstr("has version 99, and this program knows none beyond"));
  {
    const auto database = Database::Open(file()).value();
    ASSERT_TRUE(database->RunScript(Format("PRAGMA user_version={}", JobMigrations().size())));
  }
  EXPECT_EQ(OpenError(), "no error");
}

TEST_F(DamagedStoreTest, TheFilesAreForTheirOwnerAlone) {
  Reopen();
  Add();
  for (const auto& entry : std::filesystem::directory_iterator(state())) {
    struct stat status{};
    ASSERT_EQ(::stat(entry.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u) << entry.path();
  }
}

TEST_F(DamagedStoreTest, ASecondServerIsRefused) {
  Reopen();
  EXPECT_THAT(OpenError(), HasSubstr("is in use by process " + std::to_string(::getpid())));
  store_.reset();
  EXPECT_EQ(OpenError(), "no error");
}

// Runs `work` in a process of its own with a small disk at `folder`; gives what it says went wrong. "skip" where the
// system does not let us mount.
std::string OnASmallDisk(const std::filesystem::path& folder, const std::function<std::string()>& work) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return "pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    std::string said = "skip";
    const bool apart = ::unshare(CLONE_NEWNS) == 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0;
    if (apart && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
        ::mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=1m") == 0) {
      said = work();
    }
    const ssize_t written = ::write(pipe[1], said.data(), said.size());
    ::_exit(written == std::ssize(said) ? 0 : 1);
  }
  ::close(pipe[1]);
  std::string said;
  std::array<char, 4096> buffer{};
  for (ssize_t got = 0; (got = ::read(pipe[0], buffer.data(), buffer.size())) > 0;) {
    said.append(buffer.data(), static_cast<std::size_t>(got));
  }
  ::close(pipe[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? said : said + " (the child failed)";
}

std::string FillTheDisk(const std::filesystem::path& folder) {
  const FakeClock clock;
  auto store = JobStore::Open(folder, clock);
  if (!store) return store.error().message;
  const JobId id = (*store)->Submit({.spec = "{}"}).value().job.id;
  std::ofstream(folder / "other") << std::string(500'000, 'x');
  const std::string body = "\"" + std::string(60'000, 'x') + "\"";
  std::size_t kept = 1;  // Its submission.
  Result<std::int64_t> added = 0;
  while (added && kept < 100) {
    added = (*store)->AddEvent(id, "log", body);
    kept += added ? 1 : 0;
  }
  if (added) return "the disk never filled";
  if (added.error().code != ErrorCode::kUnavailable) return "another code: " + added.error().message;
  if (!added.error().message.contains("nothing was changed")) return added.error().message;
  if ((*store)->EventsAfter(id, 0, 1000)->size() != kept) return "an event is half there";
  std::filesystem::remove(folder / "other");
  if (const auto again = (*store)->AddEvent(id, "log", body); !again) return "no recovery: " + again.error().message;
  store->reset();
  store = JobStore::Open(folder, clock);
  if (!store) return store.error().message;
  return (*store)->EventsAfter(id, 0, 1000)->size() == kept + 1 ? "" : "events are lost";
}

TEST(JobStoreFaults, AFullDiskIsToldAndChangesNothing) {
  const TestFolder folder;
  const std::string said = OnASmallDisk(folder.path(), [&] { return FillTheDisk(folder.path()); });
  if (said == "skip") GTEST_SKIP() << "this system does not let us mount a small disk";
  EXPECT_EQ(said, "");
}

TEST(JobStoreFaults, AReadOnlyDiskIsTold) {
  const TestFolder folder;
  const std::string said = OnASmallDisk(folder.path(), [&]() -> std::string {
    const FakeClock clock;
    if (const auto store = JobStore::Open(folder.path(), clock); !store) return store.error().message;
    if (::mount("none", folder.path().c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) != 0) return "skip";
    const auto store = JobStore::Open(folder.path(), clock);
    return store ? "it was opened" : store.error().message;
  });
  if (said == "skip") GTEST_SKIP() << "this system does not let us mount a small disk";
  EXPECT_THAT(said, HasSubstr("cannot be opened for writing: Read-only file system"));
}

}  // namespace
}  // namespace tandem::jobs
