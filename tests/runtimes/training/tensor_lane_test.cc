#include "runtimes/training/trainer/tensor_lane.h"

#include <algorithm>
#include <csignal>
#include <cstring>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace tandem::training {
namespace {

constexpr std::size_t kPage = TensorLane::kPage;
constexpr std::size_t kReach = std::size_t{1} << 30;

// Two trainers of one lane, in one process.
class TensorLaneTest : public testing::Test {
 protected:
  TensorLaneTest() {
    SetLength(16 * kPage);
    one_ = TensorLane::Map(fd_, kReach).value();
    other_ = TensorLane::Map(fd_, kReach).value();
    for (TensorLane* lane : {one_.get(), other_.get()}) lane->SetLength(16 * kPage);
  }
  ~TensorLaneTest() override {
    one_.reset();
    other_.reset();
    ::close(fd_);
  }
  void SetLength(std::size_t bytes) const { ASSERT_EQ(::ftruncate(fd_, static_cast<off_t>(bytes)), 0); }

  static bool AllAre(const void* data, std::size_t size, char value) {
    const auto* const bytes = static_cast<const char*>(data);
    return std::all_of(bytes, bytes + size, [value](char byte) { return byte == value; });
  }

  const int fd_ = ::memfd_create("lane", MFD_CLOEXEC);
  std::unique_ptr<TensorLane> one_;
  std::unique_ptr<TensorLane> other_;
};

TEST_F(TensorLaneTest, WhatIsGivenBackIsTakenAgainAndCoalesces) {
  void* const a = one_->Take(3 * kPage);
  void* const b = one_->Take(5 * kPage);
  void* const c = one_->Take(8 * kPage);
  ASSERT_NE(c, nullptr);
  EXPECT_EQ(one_->Take(1), nullptr) << "it is full";
  EXPECT_EQ(one_->GiveBack(b), 5 * kPage);
  EXPECT_EQ(one_->GiveBack(a), 3 * kPage);
  EXPECT_EQ(one_->Take(8 * kPage - 1), a) << "the two are one again";
  EXPECT_EQ(one_->GiveBack(c), 8 * kPage);
  EXPECT_TRUE(one_->Owns(a));
  EXPECT_FALSE(other_->Owns(a));
}

TEST_F(TensorLaneTest, AnIterationOfAnotherUsesTheSamePagesAndNothingIsCopied) {
  void* const mine = one_->Take(16 * kPage);
  std::memset(mine, 7, 16 * kPage);
  one_->GiveBack(mine);
  EXPECT_EQ(one_->Settle().value(), 0U);
  void* const theirs = other_->Take(16 * kPage);
  EXPECT_TRUE(AllAre(theirs, 16 * kPage, 7)) << "the pages that were there, as they were";
  EXPECT_NE(mine, theirs);
}

TEST_F(TensorLaneTest, WhatOutlivesAnIterationIsNeverOverwritten) {
  void* const gone = one_->Take(2 * kPage);
  void* const stays = one_->Take(4 * kPage);
  std::memset(stays, 7, 4 * kPage);
  one_->GiveBack(gone);
  EXPECT_EQ(one_->Settle().value(), 4 * kPage);
  EXPECT_EQ(one_->Settle().value(), 0U) << "once";

  void* const all = other_->Take(16 * kPage);
  std::memset(all, 9, 16 * kPage);
  EXPECT_TRUE(AllAre(stays, 4 * kPage, 7)) << "at its old address, and as it was";
  other_->GiveBack(all);

  std::memset(stays, 8, 4 * kPage);
  EXPECT_EQ(one_->GiveBack(stays), 4 * kPage);
  void* const again = one_->Take(16 * kPage);
  EXPECT_TRUE(AllAre(again, 16 * kPage, 9)) << "the lane is all there again";
}

TEST_F(TensorLaneTest, WhatDoesNotFitIsRefusedWithWhatWouldBeEnough) {
  void* const first = one_->Take(10 * kPage);
  EXPECT_EQ(one_->Take(7 * kPage), nullptr);
  EXPECT_EQ(one_->needed(), 17 * kPage);
  SetLength(17 * kPage);
  one_->SetLength(17 * kPage);
  void* const second = one_->Take(7 * kPage);
  ASSERT_NE(second, nullptr);
  std::memset(second, 1, 7 * kPage);
  one_->GiveBack(second);
  one_->GiveBack(first);
  EXPECT_EQ(one_->Take(2 * kReach), nullptr);
  EXPECT_EQ(one_->Take(~std::size_t{0}), nullptr);
}

TEST_F(TensorLaneTest, WritingBeyondTheEndIsAFaultOfWhoDoes) {
  auto* const data = static_cast<char*>(one_->Take(16 * kPage));
  data[0] = 7;
  const auto write = [data] {
    (void)::signal(SIGBUS, SIG_DFL);  // A sanitizer would hear it.
    data[16 * kPage] = 1;
  };
  EXPECT_EXIT(write(), testing::KilledBySignal(SIGBUS), "");
  EXPECT_EQ(data[0], 7);
}

}  // namespace
}  // namespace tandem::training
