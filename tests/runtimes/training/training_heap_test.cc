#include "runtimes/training/trainer/training_heap.h"

#include <fstream>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <sys/sysinfo.h>
#include <unistd.h>

namespace tandem::training {
namespace {

constexpr std::int64_t kLarge = 1 << 20;

// Bytes that this process holds.
std::int64_t Resident() {
  std::int64_t all = 0;
  std::int64_t resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

// One test: the heap is the whole process's, for good.
TEST(TrainingHeap, TensorsGetTheMemoryOfTheLastOnes) {
  at::Tensor older = at::ones({kLarge});
  KeepFreedMemory();
  at::Tensor first = at::full({kLarge}, 2.0F);
  at::Tensor second = at::full({kLarge + 1}, 3.0F);
  EXPECT_EQ(older.sum().item<double>(), kLarge);
  EXPECT_EQ(first.sum().item<double>(), 2 * kLarge);
  EXPECT_EQ(second.sum().item<double>(), 3 * (kLarge + 1));
  older.reset();

  const void* const place = first.data_ptr();
  first.reset();
  DropFreedMemory();
  first = at::zeros({kLarge});
  EXPECT_EQ(first.sum().item<double>(), 0) << "no tensor sees what the last one left";
  EXPECT_EQ(second.sum().item<double>(), 3 * (kLarge + 1));
#ifndef TANDEM_SANITIZED
  EXPECT_EQ(first.data_ptr(), place);
  const auto counted = CountTensorBytes();
  ASSERT_TRUE(counted);
  EXPECT_GE(counted->live, 4U * (2 * kLarge + 1));
  {
    const at::Tensor small = at::ones({100});
    const at::Tensor another = at::ones({kLarge});
    EXPECT_GE(CountTensorBytes()->live, counted->live + 4 * (kLarge + 100));
  }
  EXPECT_EQ(CountTensorBytes()->live, counted->live);
  EXPECT_GE(CountTensorBytes()->peak, counted->live + 4 * (kLarge + 100));
  ForgetTensorPeak();
  EXPECT_EQ(CountTensorBytes()->peak, counted->live);
  const std::int64_t before = Resident();
  at::Tensor large = at::ones({64 * kLarge});
  EXPECT_GT(Resident(), before + 200 * kLarge);
  large.reset();
  EXPECT_GT(Resident(), before + 200 * kLarge) << "kept for the next";
  DropFreedMemory();
  EXPECT_LT(Resident(), before + 100 * kLarge);
  EXPECT_EQ(at::ones({64 * kLarge}).sum().item<double>(), 64 * kLarge) << "memory again";
#else
  (void)place;
  (void)Resident;
#endif
  // Of what no machine has, the system refuses to make memory, unless it is told to believe everything.
  struct sysinfo machine{};
  int believes = 0;
  std::ifstream("/proc/sys/vm/overcommit_memory") >> believes;
  if (::sysinfo(&machine) == 0 && believes != 1 && machine.totalram * machine.mem_unit < std::uint64_t{400} << 30) {
    EXPECT_THROW((void)at::empty({std::int64_t{100} << 30}), std::exception);
  }
  EXPECT_EQ(at::ones({3}).sum().item<double>(), 3) << "small ones are there, too";
  EXPECT_THROW((void)at::empty({std::int64_t{1} << 45}), std::exception);
}

}  // namespace
}  // namespace tandem::training
