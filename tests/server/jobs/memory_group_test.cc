// Against a tree of plain files that looks like the kernel's.

#include "server/jobs/memory_group.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tests/server/jobs/fake_control_group.h"
#include "tests/server/jobs/store_fixture.h"

namespace tandem::jobs {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class MemoryGroupTest : public testing::Test {
 protected:
  void Write(const std::string& file, const std::string& text) const {
    fs::create_directories((parent() / file).parent_path());
    std::ofstream(parent() / file) << text;
  }
  [[nodiscard]] std::string Read(const std::string& file) const { return TextIn(parent() / file); }
  // What the kernel puts into a new group.
  void SecondVersion(const std::string& group) const { MakeControlGroup(parent(), group); }
  void FirstVersion(const std::string& group) const {
    Write("memory.limit_in_bytes", "9223372036854771712\n");
    for (const char* const file : {"cgroup.procs", "memory.limit_in_bytes"}) Write(group + "/" + file, "");
    Write(group + "/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
  }
  static std::string Trial() { return "tandem-trial-" + std::to_string(::getpid()); }
  [[nodiscard]] fs::path parent() const { return folder_.path() / "groups"; }

  const TestFolder folder_;
};

TEST_F(MemoryGroupTest, SetsTheLimitsOfVersionTwo) {
  SecondVersion("job-1");
  const auto group = MemoryGroup::Make(parent(), "job-1", 123'000'000);
  ASSERT_TRUE(group) << group.error().message;
  EXPECT_EQ(Read("job-1/memory.max"), "123000000");
  EXPECT_EQ(Read("job-1/memory.swap.max"), "0");
  const std::string tried = Read("job-1/cgroup.procs");
  EXPECT_EQ(::write((*group)->door(), "0", 1), 1);
  EXPECT_EQ(Read("job-1/cgroup.procs"), tried + "0");
}

TEST_F(MemoryGroupTest, OneThatNobodyCanMoveIntoIsRefused) {
  MakeClosedControlGroup(parent(), "job-1");
  const auto group = MemoryGroup::Make(parent(), "job-1", 123'000'000);
  ASSERT_FALSE(group);
  EXPECT_EQ(group.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(group.error().message, HasSubstr("job-1/cgroup.procs': No space left on device"));
  MakeClosedControlGroup(parent(), Trial());
  const Status usable = MemoryGroup::Check(parent());
  ASSERT_FALSE(usable);
  EXPECT_EQ(usable.error().code, ErrorCode::kUnsupported);
}

TEST_F(MemoryGroupTest, SetsTheLimitsOfVersionOne) {
  FirstVersion("job-1");
  {
    const auto group = MemoryGroup::Make(parent(), "job-1", 123'000'000);
    ASSERT_TRUE(group) << group.error().message;
    EXPECT_EQ(Read("job-1/memory.limit_in_bytes"), "123000000");
    EXPECT_FALSE(fs::exists(parent() / "job-1/memory.memsw.limit_in_bytes"));
  }
  Write("job-1/memory.memsw.limit_in_bytes", "");
  ASSERT_TRUE(MemoryGroup::Make(parent(), "job-1", 5'000'000));
  EXPECT_EQ(Read("job-1/memory.memsw.limit_in_bytes"), "5000000");
}

TEST_F(MemoryGroupTest, KnowsWhetherTheKernelKilledSinceItWasMade) {
  SecondVersion("two");
  const auto two = MemoryGroup::Make(parent(), "two", 1);
  EXPECT_FALSE((*two)->HasKilled());
  Write("two/memory.events", "low 0\nhigh 0\nmax 9\noom 2\noom_kill 1\n");
  EXPECT_TRUE((*two)->HasKilled());

  fs::remove_all(parent());
  FirstVersion("one");
  const auto one = MemoryGroup::Make(parent(), "one", 1);
  EXPECT_FALSE((*one)->HasKilled());  // Those two were a trainer's before.
  Write("one/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
  EXPECT_TRUE((*one)->HasKilled());
}

TEST_F(MemoryGroupTest, AShareOfTheCpuIsMadeIdleOrRefused) {
  SecondVersion("job-1");
  Write("job-1/cpu.weight", "100\n");
  const auto refused = MemoryGroup::Make(parent(), "job-1", 1);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("has a share of the CPU of its own"));
  Write("job-1/cpu.idle", "0\n");
  ASSERT_TRUE(MemoryGroup::Make(parent(), "job-1", 1));
  EXPECT_EQ(Read("job-1/cpu.idle"), "1");
}

TEST_F(MemoryGroupTest, ChecksWhatItIsToBeMadeIn) {
  EXPECT_THAT(MemoryGroup::Check(parent()).error().message, HasSubstr("is not there"));
  Write("readme", "");
  EXPECT_THAT(MemoryGroup::Check(parent()).error().message, HasSubstr("is no control group with a memory controller"));
  SecondVersion(Trial());
  EXPECT_TRUE(MemoryGroup::Check(parent()));
  Write("cgroup.subtree_control", "");
  EXPECT_TRUE(MemoryGroup::Check(parent()));
  EXPECT_EQ(Read("cgroup.subtree_control"), "+memory");
  Write("cgroup.controllers", "cpu io pids\n");
  EXPECT_THAT(MemoryGroup::Check(parent()).error().message, HasSubstr("has no memory controller"));
}

TEST_F(MemoryGroupTest, IsRemovedWithTheObject) {
  FirstVersion("other");
  // In a plain folder its files are in the way; the kernel's are not.
  EXPECT_FALSE(MemoryGroup::Make(parent(), "job-1", 1));  // It has no door.
  EXPECT_FALSE(fs::exists(parent() / "job-1"));
}

TEST_F(MemoryGroupTest, OnlyADelegatedGroupIsUsedUnasked) {
  const fs::path service = parent() / "system.slice/tandem.service";
  fs::create_directories(service / "server");
  const std::string member = "12:pids:/x\n0::/system.slice/tandem.service/server\n";
  EXPECT_EQ(DelegatedGroup(member, parent()), std::nullopt);
  EXPECT_EQ(DelegatedGroup("0::/\n", parent()), std::nullopt);
  EXPECT_EQ(DelegatedGroup("0::/one\n", parent()), std::nullopt);
  EXPECT_EQ(DelegatedGroup("4:memory:/a/b\n", parent()), std::nullopt);
  if (::setxattr(service.c_str(), "user.delegate", "1", 1, 0) != 0) GTEST_SKIP() << "no attributes on this disk";
  EXPECT_EQ(DelegatedGroup(member, parent()), service);
}

}  // namespace
}  // namespace tandem::jobs
