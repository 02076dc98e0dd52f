#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "api/base/buffer.h"
#include "api/base/result.h"

namespace tandem {

// How many bytes the server holds at once, over all connections: bodies as they come, and what is unpacked from them,
// until the last tensor that points into either is gone; or answers until they are sent. Thread-safe. Shared by the
// server and every holder.
class ByteBudget {
 public:
  explicit ByteBudget(std::size_t limit) : limit_(limit) {}

  [[nodiscard]] bool TryTake(std::size_t bytes) {
    const std::size_t before = used_.fetch_add(bytes, std::memory_order_relaxed);
    if (before <= limit_ && bytes <= limit_ - before) return true;
    Return(bytes);
    return false;
  }
  // As TryTake(), but leaves `kept` to others, and grants anything while nothing else is taken.
  [[nodiscard]] bool TryTakeAllBut(std::size_t kept, std::size_t bytes) {
    const std::size_t most = limit_ - std::min(kept, limit_);
    const std::size_t before = used_.fetch_add(bytes, std::memory_order_relaxed);
    if (before == 0 || (before <= most && bytes <= most - before)) return true;
    Return(bytes);
    return false;
  }
  void Return(std::size_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }
  [[nodiscard]] std::size_t limit() const { return limit_; }
  [[nodiscard]] std::size_t used() const { return used_.load(std::memory_order_relaxed); }

 private:
  const std::size_t limit_;
  std::atomic<std::size_t> used_{0};
};

// What one holder has of a budget; given back when it goes. Without a budget everything is granted. One thread at a
// time.
class BudgetShare {
 public:
  BudgetShare() = default;
  explicit BudgetShare(std::shared_ptr<ByteBudget> budget) : budget_(std::move(budget)) {}
  BudgetShare(BudgetShare&& other) noexcept
      : budget_(std::move(other.budget_)), bytes_(std::exchange(other.bytes_, 0)) {}
  BudgetShare& operator=(BudgetShare&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~BudgetShare() { Return(bytes_); }

  // False: the budget has no room for so much more.
  [[nodiscard]] bool Take(std::size_t bytes) {
    if (budget_ && !budget_->TryTake(bytes)) return false;
    bytes_ += bytes;
    return true;
  }
  [[nodiscard]] bool TakeAllBut(std::size_t kept, std::size_t bytes) {
    if (budget_ && !budget_->TryTakeAllBut(kept, bytes)) return false;
    bytes_ += bytes;
    return true;
  }
  void Return(std::size_t bytes) {
    if (budget_) budget_->Return(bytes);
    bytes_ -= bytes;
  }

 private:
  std::shared_ptr<ByteBudget> budget_;  // Shared because bodies outlive the server.
  std::size_t bytes_ = 0;
};

[[nodiscard]] inline std::unexpected<Error> NoRoomInBudget() {
  return Fail(ErrorCode::kUnavailable, "no memory is left for request bodies");
}

// Bytes::Own for memory that counts in a budget.
[[nodiscard]] inline Bytes OwnShared(AlignedBuffer buffer, BudgetShare share) {
  struct Owner {
    AlignedBuffer buffer;
    BudgetShare share;
  };
  const std::span<const std::byte> view = buffer.span();
  return {view, std::make_shared<const Owner>(std::move(buffer), std::move(share))};
}

}  // namespace tandem
