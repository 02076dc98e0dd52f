#include "server/metrics/process_usage.h"

#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace tandem {
namespace {

TEST(ProcessUsage, CountsFilesAndThreads) {
  std::jthread([] {}).join();  // Sanitizers have a thread of their own from the first one on.
  const ProcessUsage before = ReadProcessUsage();
  EXPECT_GT(before.resident_bytes, 0u);
  EXPECT_GT(before.open_fds, 2u);
  const int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ProcessUsage during;
  std::jthread([&] { during = ReadProcessUsage(); }).join();
  ::close(fd);
  EXPECT_EQ(during.open_fds, before.open_fds + 1);
  EXPECT_EQ(during.threads, before.threads + 1);
}

TEST(ProcessUsage, ReadsTheMachinesMemory) {
  const MemoryUsage memory = ReadMemoryUsage();
  EXPECT_GT(memory.used_bytes, 0u);
  EXPECT_LT(memory.used_bytes, memory.total_bytes);
}

TEST(CpuUtilization, IsTheBusyShareSinceTheLastAnswer) {
  CpuUtilization cpu({.busy = 1000, .total = 2000}, 100);
  EXPECT_EQ(cpu.At({.busy = 1050, .total = 2100}), 0.5);
  EXPECT_EQ(cpu.At({.busy = 1050, .total = 2300}), 0);
  EXPECT_EQ(cpu.At({.busy = 1250, .total = 2500}), 1);
}

TEST(CpuUtilization, WhoeverAsksSoonAfterGetsTheSameAnswer) {
  CpuUtilization cpu({.busy = 1000, .total = 2000}, 100);
  EXPECT_EQ(cpu.At({.busy = 1050, .total = 2100}), 0.5);
  EXPECT_EQ(cpu.At({.busy = 1051, .total = 2101}), 0.5) << "a sliver says nothing";
  EXPECT_EQ(cpu.At({.busy = 1150, .total = 2200}), 1) << "and takes nothing from the next answer";
}

}  // namespace
}  // namespace tandem
