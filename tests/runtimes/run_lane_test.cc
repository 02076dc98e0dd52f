#include "runtimes/onnx/run_lane.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "tests/runtimes/session_fixture.h"

namespace tandem {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

// How many of these bytes are in memory, but for the pages at both ends: a sanitizer's own memory does not count.
std::size_t Resident(const std::byte* data, std::size_t size) {
  constexpr std::size_t kPage = 4096;
  const std::size_t skipped = kPage - std::bit_cast<std::uintptr_t>(data) % kPage;
  std::vector<unsigned char> pages((size - skipped) / kPage);
  EXPECT_EQ(::mincore(const_cast<std::byte*>(data) + skipped, pages.size() * kPage, pages.data()), 0);
  return kPage * static_cast<std::size_t>(std::ranges::count_if(pages, [](unsigned char page) { return page & 1U; }));
}

// A lane of that length, of which no more may be memory than the bound says.
class TestLane {
 public:
  explicit TestLane(std::size_t length, std::uint64_t bound)
      : length_(length),
        range_(static_cast<std::byte*>(
            ::mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))),
        bound_(bound),
        lane_(std::make_unique<RunLane>(range_, length, bound_)) {}
  ~TestLane() {
    lane_.reset();
    ::munmap(range_, length_);
  }
  TestLane(const TestLane&) = delete;
  TestLane& operator=(const TestLane&) = delete;

  RunLane* operator->() { return lane_.get(); }
  [[nodiscard]] std::size_t OffsetOf(const void* data) const {
    return static_cast<std::size_t>(static_cast<const std::byte*>(data) - range_);
  }
  [[nodiscard]] bool Holds(const void* data, std::size_t size) const { return OffsetOf(data) + size <= length_; }
  RunBound& bound() { return bound_; }

 private:
  const std::size_t length_;
  std::byte* const range_;
  RunBound bound_;
  std::unique_ptr<RunLane> lane_;
};

TEST(RunLane, BlocksAreAlignedApartAndReadableBeyondTheirEnd) {
  TestLane lane(8 * kMiB, 8 * kMiB);
  std::vector<std::pair<std::byte*, std::size_t>> blocks;
  for (const std::size_t size : {std::size_t{1}, std::size_t{63}, std::size_t{64}, std::size_t{65}, std::size_t{4096},
                                 std::size_t{100'001}, kMiB}) {
    auto* const block = static_cast<std::byte*>(lane->Take(size));
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(std::bit_cast<std::uintptr_t>(block) % RunLane::kAlignment, 0U);
    std::memset(block, static_cast<int>(blocks.size()) + 1, size + 32);  // What lies beyond is nobody's.
    blocks.emplace_back(block, size);
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const auto& [block, size] = blocks[i];
    for (std::size_t at = 0; at < size; ++at) ASSERT_EQ(block[at], std::byte(i + 1)) << size << " at " << at;
    lane->GiveBack(block);
  }
}

TEST(RunLane, WhatIsGivenBackIsOnePieceAgain) {
  TestLane lane(4 * kMiB, 4 * kMiB);
  // In every order: of three neighbours none, one or both sides are gaps already.
  for (const auto& order : {std::array{0, 1, 2}, std::array{2, 1, 0}, std::array{0, 2, 1}, std::array{1, 0, 2}}) {
    std::array<void*, 3> blocks{};
    for (void*& block : blocks) block = lane->Take(kMiB);
    for (const void* block : blocks) ASSERT_NE(block, nullptr);
    for (const int i : order) lane->GiveBack(blocks[static_cast<std::size_t>(i)]);
    void* const whole = lane->Take(4 * kMiB - 256);
    ASSERT_NE(whole, nullptr);
    lane->GiveBack(whole);
  }
}

TEST(RunLane, TheSmallestGapThatFitsIsTaken) {
  TestLane lane(8 * kMiB, 8 * kMiB);
  void* const large = lane->Take(2 * kMiB);
  void* const first = lane->Take(64);
  void* const small = lane->Take(kMiB);
  void* const second = lane->Take(64);
  lane->GiveBack(large);
  lane->GiveBack(small);
  EXPECT_EQ(lane->Take(kMiB), small);
  lane->GiveBack(small);
  lane->GiveBack(first);
  lane->GiveBack(second);
}

TEST(RunLane, BeyondItsLengthOrTheBoundThereIsNothing) {
  TestLane lane(4 * kMiB, 2 * kMiB);
  EXPECT_EQ(lane->Take(~std::size_t{0}), nullptr);
  EXPECT_EQ(lane->Take(5 * kMiB), nullptr);
  EXPECT_EQ(lane->Take(3 * kMiB), nullptr) << "it is long enough, but so much may not be memory";
  void* const fits = lane->Take(kMiB);
  ASSERT_NE(fits, nullptr);
  lane.bound().SetAside(kMiB);
  EXPECT_EQ(lane->Take(kMiB), nullptr) << "what is left is others'";
  lane.bound().SetAside(0);
  lane->GiveBack(fits);
  lane->Trim();
  EXPECT_EQ(lane.bound().used(), 0U);
}

TEST(RunLane, ARunIsMeasuredByTheLaneThatItNeeds) {
  TestLane lane(8 * kMiB, 8 * kMiB);
  lane->Begin();
  void* const first = lane->Take(kMiB);
  void* const second = lane->Take(kMiB);
  lane->GiveBack(first);
  void* const third = lane->Take(kMiB);  // Where the first was.
  lane->GiveBack(second);
  lane->GiveBack(third);
  const std::uint64_t needed = lane->End();
  EXPECT_GE(needed, 2 * kMiB);
  EXPECT_LT(needed, 2 * kMiB + 4096);
  lane->Begin();
  EXPECT_EQ(lane->End(), 0U) << "what was before it is not its own";
}

TEST(RunLane, MemoryThatNoRunNeededLatelyGoesBackAndTheRestStays) {
  TestLane lane(64 * kMiB, 64 * kMiB);
  const auto run = [&](std::size_t size) {
    lane->Begin();
    lane->GiveBack(lane->Take(size));
    lane->End();
  };
  run(40 * kMiB);
  run(3 * kMiB);
  EXPECT_GE(lane->grown(), 40 * kMiB);
  lane->TrimToUse();
  EXPECT_GE(lane->grown(), 40 * kMiB) << "one of the runs needed it";
  run(3 * kMiB);
  lane->TrimToUse();
  EXPECT_GE(lane->grown(), 3 * kMiB);
  EXPECT_LE(lane->grown(), 4 * kMiB);
  EXPECT_EQ(lane.bound().used(), lane->grown());
  lane->Trim();
  EXPECT_EQ(lane->grown(), 0U);
}

TEST(RunLane, TrimmingGivesPagesBackAroundWhatIsStillInUse) {
  TestLane lane(256 * kMiB, 256 * kMiB);
  auto* const low = static_cast<std::byte*>(lane->Take(64 * kMiB));
  auto* const kept = static_cast<std::byte*>(lane->Take(kMiB));
  auto* const high = static_cast<std::byte*>(lane->Take(64 * kMiB));
  std::memset(low, 1, 64 * kMiB);
  std::memset(kept, 2, kMiB);
  std::memset(high, 3, 64 * kMiB);
  lane->GiveBack(low);
  lane->GiveBack(high);
  EXPECT_GT(Resident(low, 64 * kMiB) + Resident(high, 64 * kMiB), 120 * kMiB);
  lane->Trim();
  EXPECT_EQ(Resident(low, 64 * kMiB), 0U);
  EXPECT_EQ(Resident(high, 64 * kMiB), 0U);
  for (std::size_t at = 0; at < kMiB; ++at) ASSERT_EQ(kept[at], std::byte{2});
  lane->GiveBack(kept);
  void* const whole = lane->Take(200 * kMiB);
  EXPECT_NE(whole, nullptr);
  lane->GiveBack(whole);
}

// Against a plain model: no block lies in another, and nothing that is written is lost.
TEST(RunLane, BlocksOfAnySizesInAnyOrderNeverOverlap) {
  TestLane lane(64 * kMiB, 64 * kMiB);
  std::mt19937_64 random(20);
  std::map<std::size_t, std::pair<std::byte*, std::size_t>> taken;  // By offset.
  for (int step = 0; step < 30'000; ++step) {
    const bool take = taken.empty() || (taken.size() < 200 && random() % 2 == 0);
    if (take) {
      const std::size_t size = 1 + (random() % (std::size_t{1} << (4 + random() % 15)));
      auto* const block = static_cast<std::byte*>(lane->Take(size));
      ASSERT_NE(block, nullptr);
      ASSERT_TRUE(lane.Holds(block, size));
      const std::size_t offset = lane.OffsetOf(block);
      const auto after = taken.lower_bound(offset);
      ASSERT_TRUE(after == taken.end() || offset + size <= after->first);
      if (after != taken.begin()) {
        const auto& [at, before] = *std::prev(after);
        ASSERT_LE(at + before.second, offset);
      }
      block[0] = block[size - 1] = std::byte(size);
      taken.emplace(offset, std::pair{block, size});
    } else {
      auto it = taken.begin();
      std::advance(it, static_cast<std::ptrdiff_t>(random() % taken.size()));
      const auto [block, size] = it->second;
      ASSERT_EQ(block[0], std::byte(size));
      ASSERT_EQ(block[size - 1], std::byte(size));
      lane->GiveBack(block);
      taken.erase(it);
    }
    if (step % 1000 == 0) lane->Trim();
  }
  for (const auto& [offset, block] : taken) lane->GiveBack(block.first);
  lane->Trim();
  EXPECT_EQ(lane->grown(), 0U) << "nothing is left behind";
}

TEST(RunLane, ResultsMayBeGivenBackByOtherThreads) {
  TestLane lane(64 * kMiB, 64 * kMiB);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&lane, t] {
      std::mt19937_64 random(static_cast<std::uint64_t>(t));
      for (int i = 0; i < 2000; ++i) {
        const std::size_t size = 64 + random() % 10'000;
        auto* const block = static_cast<std::byte*>(lane->Take(size));
        ASSERT_NE(block, nullptr);
        std::memset(block, t, size);
        ASSERT_EQ(block[size / 2], std::byte(t));
        lane->GiveBack(block);
        if (i % 500 == 0) lane->Trim();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  lane->Trim();
  EXPECT_EQ(lane->grown(), 0U);
}

}  // namespace
}  // namespace tandem
