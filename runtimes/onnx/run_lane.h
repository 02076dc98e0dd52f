#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "api/base/buffer.h"
#include "api/base/mutex.h"

namespace tandem {

// How much memory all runs together may have. Thread-safe.
class RunBound {
 public:
  explicit RunBound(std::uint64_t bytes) : bytes_(bytes) {}

  // False when there is not so much left.
  [[nodiscard]] bool Take(std::uint64_t bytes);
  void GiveBack(std::uint64_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }
  // So much of it is for others, who have it already; what is in use stays.
  void SetAside(std::uint64_t bytes) { aside_.store(bytes, std::memory_order_relaxed); }
  // More is in use than was left when some was set aside.
  [[nodiscard]] bool exceeded() const {
    return used() > bytes_ - std::min(bytes_, aside_.load(std::memory_order_relaxed));
  }
  [[nodiscard]] std::uint64_t used() const { return used_.load(std::memory_order_relaxed); }

 private:
  const std::uint64_t bytes_;
  std::atomic<std::uint64_t> used_{0};
  std::atomic<std::uint64_t> aside_{0};
};

// Memory in which one run after the other computes, of whichever models: a range of addresses of which as much is
// memory as the largest of the latest runs needed. Takes the smallest gap that fits and joins gaps that touch; between
// runs it is empty, but for results that are still being sent.
//
// Made by RunMemory, which lends it to one run at a time. Thread-safe, as results are given back by other threads.
class RunLane {
 public:
  // Blocks are apart by headers, which are as large as their alignment.
  static constexpr std::size_t kAlignment = kTensorAlignment;

  // `range` is addresses without memory, `size` bytes, a multiple of kStep, which are there longer than the lane; so is
  // `bound`.
  RunLane(std::byte* range, std::size_t size, RunBound& bound) : range_(range), size_(size), bound_(bound) {}
  ~RunLane();
  RunLane(const RunLane&) = delete;
  RunLane& operator=(const RunLane&) = delete;

  // At kAlignment, and readable a little beyond its end, as ONNX Runtime's kernels need it. Null when there is no
  // memory.
  [[nodiscard]] void* Take(std::size_t size);
  // What Take() gave.
  void GiveBack(void* data);

  // A run begins; all that it takes is counted from now on.
  void Begin();
  // It has ended: how long a lane it needed, what was left over from others included.
  std::uint64_t End();

  // Gives back to the system what is not in use beyond what the largest run needed since this was called last.
  void TrimToUse();
  // All of what is not in use.
  void Trim();

  // Bytes that are memory; for tests.
  [[nodiscard]] std::size_t grown() const;
  // Of the address of a block: its whole size; for tests.
  static constexpr std::size_t kStep = std::size_t{1} << 20;

 private:
  struct Block;
  static constexpr std::size_t kBins = 48;

  [[nodiscard]] Block* At(std::size_t offset) const;
  [[nodiscard]] std::size_t OffsetOf(const Block* block) const;
  [[nodiscard]] Block* FindGap(std::size_t need) const REQUIRES(mu_);
  void AddGap(Block* block) REQUIRES(mu_);
  void RemoveGap(Block* block) REQUIRES(mu_);
  // Makes memory of the range up to there; false when there is none.
  bool Grow(std::size_t end) REQUIRES(mu_);
  // Nothing beyond that is memory any more, as far as it is not in use.
  void Shrink(std::size_t keep) REQUIRES(mu_);

  // Constant after construction.
  std::byte* const range_;
  const std::size_t size_;
  RunBound& bound_;

  mutable Mutex mu_;
  std::array<Block*, kBins> gaps_ GUARDED_BY(mu_){};  // By the logarithm of their size; each a list.
  std::uint64_t filled_bins_ GUARDED_BY(mu_) = 0;     // One bit each.
  std::size_t top_ GUARDED_BY(mu_) = 0;               // Where the last block ends.
  std::size_t last_ GUARDED_BY(mu_) = 0;              // How long that block is; 0: there is none.
  std::size_t grown_ GUARDED_BY(mu_) = 0;             // So much of the range is memory.
  std::size_t longest_ GUARDED_BY(mu_) = 0;           // top_ at most since the run began.
  std::size_t needed_ GUARDED_BY(mu_) = 0;            // By the largest run since TrimToUse().
};

}  // namespace tandem
