#include "runtimes/onnx/run_memory.h"

#include <barrier>
#include <bit>
#include <cstring>
#include <new>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/runtimes/session_fixture.h"

namespace tandem {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

class RunMemoryTest : public ::testing::Test {
 protected:
  static std::shared_ptr<RunMemory> Make(std::uint64_t bytes) {
    auto made = RunMemory::Make(SharedEnvironment()->api(), bytes);
    EXPECT_TRUE(made) << made.error().message;
    return *made;
  }
  void* Alloc(std::size_t size) { return memory_->allocator()->Alloc(memory_->allocator(), size); }
  void* Reserve(std::size_t size) { return memory_->allocator()->Reserve(memory_->allocator(), size); }
  void Free(void* data) { memory_->allocator()->Free(memory_->allocator(), data); }

  std::shared_ptr<RunMemory> memory_ = Make(64 * kMiB);
};

TEST_F(RunMemoryTest, WhatARunAsksForIsInItsLaneAndTheRestIsTheSessions) {
  void* const loaded = Alloc(kMiB);
  EXPECT_EQ(memory_->used(), 0U);
  EXPECT_GE(memory_->reserved(), kMiB);
  {
    RunMemory::Turn turn(*memory_);
    void* const activation = Alloc(2 * kMiB);
    void* const weight = Reserve(kMiB);
    EXPECT_GE(memory_->used(), 2 * kMiB);
    EXPECT_GE(memory_->reserved(), 2 * kMiB);
    std::memset(activation, 1, 2 * kMiB);
    Free(activation);
    Free(weight);
    EXPECT_GE(turn.End(), 2 * kMiB);
  }
  void* const after = Alloc(kMiB);
  EXPECT_GE(memory_->reserved(), 2 * kMiB) << "the run has ended";
  Free(after);
  Free(loaded);
  EXPECT_EQ(memory_->reserved(), 0U);
}

TEST_F(RunMemoryTest, ThreadsThatAreInNoRunHaveNoLane) {
  RunMemory::Turn turn(*memory_);
  std::thread([&] {
    void* const scratch = Alloc(kMiB);
    EXPECT_GE(memory_->reserved(), kMiB);
    Free(scratch);
  }).join();
  EXPECT_EQ(memory_->reserved(), 0U);
  EXPECT_EQ(turn.End(), 0U);
}

TEST_F(RunMemoryTest, RunsOneAfterTheOtherHaveTheSameMemory) {
  std::set<void*> places;
  for (int model = 0; model < 42; ++model) {
    const RunMemory::Turn turn(*memory_);
    void* const activation = Alloc(kMiB + static_cast<std::size_t>(model));
    places.insert(activation);
    Free(activation);
  }
  EXPECT_EQ(places.size(), 1U);
  EXPECT_LE(memory_->used(), 3 * kMiB);
}

TEST_F(RunMemoryTest, RunsAtOnceHaveALaneEach) {
  constexpr int kThreads = 4;
  std::barrier together(kThreads);
  std::vector<void*> places(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        const RunMemory::Turn turn(*memory_);
        together.arrive_and_wait();
        auto* const data = static_cast<std::byte*>(Alloc(kMiB));
        std::memset(data, t, kMiB);
        places[static_cast<std::size_t>(t)] = data;
        together.arrive_and_wait();
        EXPECT_EQ(std::set<void*>(places.begin(), places.end()).size(), std::size_t{kThreads});
        EXPECT_EQ(data[kMiB - 1], std::byte(t));
        Free(data);
        together.arrive_and_wait();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(memory_->used(), kThreads * 3 * kMiB);
  memory_->Trim();
  EXPECT_EQ(memory_->used(), 0U);
}

TEST_F(RunMemoryTest, MoreRunsThanLanesAreServedFromTheHeap) {
  std::vector<std::unique_ptr<RunMemory::Turn>> turns;
  for (std::size_t i = 0; i < RunMemory::kMostLanes + 3; ++i) {
    turns.push_back(std::make_unique<RunMemory::Turn>(*memory_));
  }
  void* const data = Alloc(kMiB);
  EXPECT_GE(memory_->reserved(), kMiB);
  Free(data);
  while (!turns.empty()) turns.pop_back();
  const RunMemory::Turn turn(*memory_);
  void* const again = Alloc(kMiB);
  EXPECT_EQ(memory_->reserved(), 0U);
  Free(again);
}

TEST_F(RunMemoryTest, BeyondTheBoundAnAllocationThrowsAndTheNextRunHasAllAgain) {
  for (int i = 0; i < 3; ++i) {
    const RunMemory::Turn turn(*memory_);
    void* const half = Alloc(32 * kMiB);
    EXPECT_THROW(Alloc(40 * kMiB), std::bad_alloc);
    EXPECT_THROW(Alloc(~std::size_t{0} - 100), std::bad_alloc);
    Free(half);
    void* const most = Alloc(60 * kMiB);
    EXPECT_NE(most, nullptr);
    Free(most);
  }
  EXPECT_THROW(Reserve(65 * kMiB), std::bad_alloc);
  memory_->SetAside(50 * kMiB);
  const RunMemory::Turn turn(*memory_);
  EXPECT_THROW(Alloc(20 * kMiB), std::bad_alloc);
  Free(Alloc(10 * kMiB));
}

TEST_F(RunMemoryTest, WhatOneLaneHasKeptIsThereForAnother) {
  const auto outer = std::make_unique<RunMemory::Turn>(*memory_);
  Free(Alloc(50 * kMiB));
  // The first lane is idle but has its memory still.
  std::thread([&] {
    const RunMemory::Turn turn(*memory_);
    void* const data = Alloc(50 * kMiB);
    EXPECT_NE(data, nullptr);
    Free(data);
  }).join();
}

TEST_F(RunMemoryTest, NothingIsNoMemory) {
  EXPECT_EQ(Alloc(0), nullptr);
  EXPECT_EQ(Reserve(0), nullptr);
  Free(nullptr);
}

TEST_F(RunMemoryTest, ALargeRunIsForgottenAfterManyThatNeedLess) {
  const auto run = [&](std::size_t size) {
    const RunMemory::Turn turn(*memory_);
    Free(Alloc(size));
  };
  run(50 * kMiB);
  EXPECT_GE(memory_->used(), 50 * kMiB);
  for (int i = 0; i < 3000; ++i) run(kMiB);
  EXPECT_LE(memory_->used(), 4 * kMiB);
}

}  // namespace
}  // namespace tandem
