#include "profiler/cpu_limits.h"

#include <string>

#include <gtest/gtest.h>

#include "tests/fakes/fake_root.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;
using fakes::FakeRoot;

TEST(CpuLimits, MetersVersionTwo) {
  const FakeRoot root;
  root.Put("proc/self/cgroup", "0::/outer/inner\n");
  root.Put("sys/fs/cgroup/outer/cpu.max", "max 100000\n");  // And no count of periods.
  root.Put("sys/fs/cgroup/outer/inner/cpu.max", "150000 100000\n");
  root.Put("sys/fs/cgroup/outer/inner/cpu.stat",
           "usage_usec 2500\nuser_usec 2000\nsystem_usec 500\nnr_periods 12\nnr_throttled 3\nthrottled_usec 7\n");
  const auto limits = OpenCpuLimits(root.path());
  ASSERT_EQ(limits.meters.size(), 1u);
  CpuLimitMeter& meter = *limits.meters[0];
  EXPECT_TRUE(meter.name().ends_with("outer/inner"));
  EXPECT_EQ(meter.Limit().value(), (CpuLimit{.quota = 150ms, .period = 100ms}));
  const CpuUse use = meter.Use().value();
  EXPECT_EQ(use.used, 2500us);
  EXPECT_EQ(use.periods, 12u);
  EXPECT_EQ(use.throttled, 3u);
}

TEST(CpuLimits, MetersVersionOneWhoseControllersAreMountedApart) {
  const FakeRoot root;
  root.Put("proc/self/cgroup", "3:cpu:/job\n2:cpuacct:/job\n0::/\n");
  root.Put("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "50000\n");
  root.Put("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "20000\n");
  root.Put("sys/fs/cgroup/cpu/job/cpu.stat", "nr_periods 1\nnr_throttled 0\nthrottled_time 0\n");
  root.Put("sys/fs/cgroup/cpuacct/job/cpuacct.usage", "123456789\n");
  const auto limits = OpenCpuLimits(root.path());
  ASSERT_EQ(limits.meters.size(), 1u);
  EXPECT_DOUBLE_EQ(limits.meters[0]->Limit()->cores(), 2.5);
  EXPECT_EQ(limits.meters[0]->Use()->used, 123456789ns);
}

TEST(CpuLimits, NamesALimitWhoseUseNobodyCounts) {
  const FakeRoot root;
  root.Put("proc/self/cgroup", "3:cpu:/job\n2:cpuacct:/\n");
  root.Put("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "50000\n");
  root.Put("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "20000\n");
  root.Put("sys/fs/cgroup/cpu/job/cpu.stat", "nr_periods 1\nnr_throttled 0\n");
  root.Put("sys/fs/cgroup/cpuacct/cpuacct.usage", "1\n");
  const auto limits = OpenCpuLimits(root.path());
  EXPECT_TRUE(limits.meters.empty());
  ASSERT_EQ(limits.unread.size(), 1u);
  EXPECT_TRUE(limits.unread[0].ends_with("cpu/job"));
}

TEST(CpuLimits, CountsAHierarchyOfTwoNamesOnce) {
  const FakeRoot root;
  root.Put("proc/self/cgroup", "3:cpu,cpuacct:/job\n");
  root.Put("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "50000\n");
  root.Put("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  root.Put("sys/fs/cgroup/cpu,cpuacct/job/cpu.stat", "nr_periods 1\nnr_throttled 0\n");
  root.Put("sys/fs/cgroup/cpu,cpuacct/job/cpuacct.usage", "1\n");
  std::filesystem::create_symlink("cpu,cpuacct", root.path() / "sys/fs/cgroup/cpu");
  EXPECT_EQ(OpenCpuLimits(root.path()).meters.size(), 1u);
}

TEST(CpuLimits, SeesThatALimitIsChangedOrLifted) {
  const FakeRoot root;
  root.Put("proc/self/cgroup", "0::/\n");
  root.Put("sys/fs/cgroup/cpu.max", "100000 100000\n");
  root.Put("sys/fs/cgroup/cpu.stat", "usage_usec 1\nnr_periods 1\nnr_throttled 0\n");
  const auto limits = OpenCpuLimits(root.path());
  ASSERT_EQ(limits.meters.size(), 1u);
  root.Put("sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_EQ(limits.meters[0]->Limit()->quota, 50ms);
  root.Put("sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_FALSE(limits.meters[0]->Limit());
}

TEST(CpuLimits, MetersAGroupThatMayComeToHaveALimit) {
  const FakeRoot root;
  root.Put("proc/self/cgroup", "0::/\n");
  root.Put("sys/fs/cgroup/cpu.max", "max 100000\n");
  root.Put("sys/fs/cgroup/cpu.stat", "usage_usec 1\nnr_periods 0\nnr_throttled 0\n");
  const auto limits = OpenCpuLimits(root.path());
  ASSERT_EQ(limits.meters.size(), 1u);
  EXPECT_FALSE(limits.meters[0]->Limit());
  root.Put("sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_EQ(limits.meters[0]->Limit()->quota, 50ms);
}

TEST(CpuLimits, RefusesNonsense) {
  for (const char* text :
       {"", "0 100000", "0.3 100000", "100000 0.2", "-5 100000", "100000 0", "1e300 100000", "nan 1", "x y"}) {
    const FakeRoot root;
    root.Put("cpu.max", text);
    EXPECT_FALSE(ReadCpuLimit({.version = CgroupVersion::kTwo, .folder = root.path(), .name = "/"})) << text;
  }
}

}  // namespace
}  // namespace tandem
