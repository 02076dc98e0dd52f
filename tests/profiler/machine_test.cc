#include "profiler/machine.h"

#include <gtest/gtest.h>

#include "tests/fakes/fake_root.h"

namespace tandem {
namespace {

using fakes::FakeRoot;

TEST(Machine, HasNoLimitsWhereNoneAreSet) {
  const FakeRoot root;
  root.Put("proc/self/cgroup", "0::/app\n");
  root.Put("sys/fs/cgroup/app/cpu.max", "max 100000\n");
  root.Put("sys/fs/cgroup/app/memory.max", "max\n");
  EXPECT_FALSE(ReadCpuQuota(root.path()));
  EXPECT_FALSE(ReadMemoryLimit(root.path()));
}

TEST(Machine, TakesTheTightestLimitOfNestedGroups) {
  const FakeRoot root;
  root.Put("proc/self/cgroup", "0::/outer/inner\n");
  root.Put("sys/fs/cgroup/outer/cpu.max", "150000 100000\n");
  root.Put("sys/fs/cgroup/outer/inner/cpu.max", "400000 100000\n");
  root.Put("sys/fs/cgroup/outer/memory.max", "2000\n");
  root.Put("sys/fs/cgroup/outer/inner/memory.max", "1000\n");
  ASSERT_TRUE(ReadCpuQuota(root.path()));
  EXPECT_DOUBLE_EQ(ReadCpuQuota(root.path())->cores, 1.5);
  EXPECT_EQ(ReadMemoryLimit(root.path()), 1000u);
}

TEST(Machine, ReadsVersionOneGroups) {
  const FakeRoot root;
  root.Put("proc/self/cgroup", "4:memory:/job\n2:cpu,cpuacct:/job\n0::/\n");
  root.Put("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "50000\n");
  root.Put("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  root.Put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  root.Put("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "4096\n");
  ASSERT_TRUE(ReadCpuQuota(root.path()));
  EXPECT_DOUBLE_EQ(ReadCpuQuota(root.path())->cores, 0.5);
  EXPECT_EQ(ReadMemoryLimit(root.path()), 4096u);
}

TEST(Machine, SeesTheLimitOfAContainerWhoseGroupIsTheMountsRoot) {
  const FakeRoot root;
  root.Put("proc/self/cgroup", "0::/docker/0123\n");
  root.Put("sys/fs/cgroup/cpu.max", "200000 100000\n");
  ASSERT_TRUE(ReadCpuQuota(root.path()));
  EXPECT_DOUBLE_EQ(ReadCpuQuota(root.path())->cores, 2);
}

TEST(Machine, HasAtLeastOneCore) {
  EXPECT_GE(UsableCores(), 1);
}

TEST(Machine, SpellsCoresAsTheKernelDoes) {
  EXPECT_EQ(CoreNumbersText({}), "");
  EXPECT_EQ(CoreNumbersText(std::vector{3}), "3");
  EXPECT_EQ(CoreNumbersText(std::vector{0, 1, 2, 3, 8, 10, 11}), "0-3,8,10-11");
}

}  // namespace
}  // namespace tandem
