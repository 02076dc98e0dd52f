#include "bench/child_process.h"

#include <fstream>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include "bench/temporary_folder.h"

namespace tandem::bench {
namespace {

using namespace std::chrono_literals;

// Whether the process is there and has not ended; one that nobody has reaped yet has ended.
bool Runs(pid_t pid) {
  std::ifstream stream("/proc/" + std::to_string(pid) + "/stat");
  std::string number, name, state;
  return (stream >> number >> name >> state) && state != "Z";
}

class ChildProcessTest : public testing::Test {
 protected:
  std::unique_ptr<ChildProcess> Start(const std::string& script,
                                      std::vector<std::pair<std::string, std::string>> environment = {}) {
    auto started = ChildProcess::Start(
        {.words = {"bash", "-c", script}, .environment = std::move(environment), .log = folder_->path() / "log"});
    EXPECT_TRUE(started);
    return *std::move(started);
  }

  [[nodiscard]] bool Printed(const std::string& text) const {
    std::ifstream stream(folder_->path() / "log");
    const std::string log{std::istreambuf_iterator<char>(stream), {}};
    return log.contains(text);
  }

  const std::unique_ptr<TemporaryFolder> folder_ = *TemporaryFolder::Make();
};

TEST_F(ChildProcessTest, RunsTheCommandWithItsEnvironmentAndKeepsWhatItPrints) {
  const auto child = Start("echo \"$GREETING\" from stdout; echo and stderr >&2; sleep 1000", {{"GREETING", "hello"}});
  ASSERT_TRUE(child->WaitUntil([&] { return Printed("and stderr"); }, {}, 60s));
  EXPECT_FALSE(child->Ended());
  EXPECT_EQ(child->LogTail(), "hello from stdout\nand stderr");
  EXPECT_EQ(child->LastLine(), "and stderr");
  EXPECT_GT(*child->MemoryBytes("VmRSS"), 0U);
  EXPECT_FALSE(child->MemoryBytes("VmNonsense"));
}

TEST_F(ChildProcessTest, EndsTheWholeGroup) {
  const std::filesystem::path file = folder_->path() / "grandchild";
  pid_t grandchild = 0;
  pid_t leader = 0;
  {
    // The grandchild does not listen to SIGTERM, and the leader ends without it.
    const auto child =
        Start("bash -c 'trap \"\" TERM; echo $$ >" + file.string() + "; while :; do sleep 1; done' & wait");
    leader = child->pid();
    ASSERT_TRUE(child->WaitUntil([&] { return static_cast<bool>(std::ifstream(file) >> grandchild); }, {}, 60s));
    EXPECT_TRUE(Runs(grandchild));
  }
  EXPECT_FALSE(Runs(leader));
  // SIGKILL has been sent; it takes effect when the kernel gets to it.
  while (Runs(grandchild)) std::this_thread::sleep_for(1ms);
}

TEST_F(ChildProcessTest, SaysWhyAProgramCannotBeRun) {
  const auto absent =
      ChildProcess::Start({.words = {"/no/such/program"}, .environment = {}, .log = folder_->path() / "log"});
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().message, "'/no/such/program' cannot be run: No such file or directory");
  EXPECT_FALSE(ChildProcess::Start({.words = {}, .environment = {}, .log = folder_->path() / "log"}));
  EXPECT_FALSE(ChildProcess::Start({.words = {"true"}, .environment = {}, .log = folder_->path() / "absent" / "log"}));
}

TEST_F(ChildProcessTest, AProgramThatEndsIsNotWaitedFor) {
  const auto child = Start("echo no luck; exit 3");
  const Status waited = child->WaitUntil([] { return false; }, {}, 10min);
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(waited.error().message, "it ended while it started");
  EXPECT_TRUE(child->Ended());
  EXPECT_EQ(child->LastLine(), "no luck");
}

TEST_F(ChildProcessTest, ReadsTheInputThatItIsGiven) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], "hello\n", 6), 6);
  close(ends[1]);
  const auto child =
      ChildProcess::Start({.words = {"cat"}, .environment = {}, .log = folder_->path() / "echoed", .input = ends[0]});
  close(ends[0]);
  ASSERT_TRUE(child) << child.error().message;
  EXPECT_TRUE((*child)->WaitForEnd({}));
  EXPECT_EQ((*child)->LastLine(), "hello");
}

TEST_F(ChildProcessTest, ToldHowItEnded) {
  const Status failed = Start("echo no luck; exit 3")->WaitForEnd({});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "it ended with 3: no luck");
  const Status stopped = Start("sleep 1000")->WaitForEnd([] { return true; });
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::kCancelled);
}

TEST_F(ChildProcessTest, WaitingEndsWithThePatienceOrWhenStopped) {
  const auto child = Start("sleep 1000");
  const Status late = child->WaitUntil([] { return false; }, {}, 20ms);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().message, "it was not ready within 0.02 s");
  EXPECT_EQ(child->LastLine(), "it printed nothing");
  const Status stopped = child->WaitUntil([] { return false; }, [] { return true; }, 10min);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::kCancelled);
}

}  // namespace
}  // namespace tandem::bench
