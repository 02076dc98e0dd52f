#include "runtimes/training/trainer/training_heap.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace tandem::training {
namespace {

constexpr std::int64_t kLarge = 1 << 20;

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
#else
  (void)place;
#endif
  EXPECT_EQ(at::ones({3}).sum().item<double>(), 3) << "small ones are there, too";
  EXPECT_THROW((void)at::empty({std::int64_t{1} << 45}), std::exception);
}

}  // namespace
}  // namespace tandem::training
