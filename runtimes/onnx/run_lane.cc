#include "runtimes/onnx/run_lane.h"

#include <algorithm>
#include <bit>
#include <limits>

#include <sys/mman.h>

namespace tandem {
namespace {

// Kernels load whole vectors, and so read up to so much beyond the end of what they asked for.
constexpr std::size_t kReadBeyond = 32;
// A gap that is searched for longer than this is not worth finding.
constexpr int kMostLooks = 32;
// Gaps as large as this give their pages back within a lane that is in use, too.
constexpr std::size_t kLargeGap = std::size_t{256} << 10;
constexpr std::size_t kPage = 4096;

constexpr std::size_t RoundUp(std::size_t size, std::size_t to) {
  return (size + to - 1) / to * to;
}

constexpr std::size_t BinOf(std::size_t size) {
  return static_cast<std::size_t>(std::bit_width(size / RunLane::kAlignment)) - 1;
}

}  // namespace

bool RunBound::Take(std::uint64_t bytes) {
  std::uint64_t used = used_.load(std::memory_order_relaxed);
  do {
    const std::uint64_t aside = std::min(aside_.load(std::memory_order_relaxed), bytes_);
    if (bytes > bytes_ - aside || used > bytes_ - aside - bytes) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  return true;
}

// Stands before each block, taken or not.
struct alignas(RunLane::kAlignment) RunLane::Block {
  std::size_t size = 0;    // With this header.
  std::size_t before = 0;  // Size of the block before it; 0: it is the first.
  bool gap = false;
  Block* next = nullptr;  // Of a gap: in the list of its bin.
  Block* previous = nullptr;

  void* data() { return this + 1; }
};

RunLane::~RunLane() {
  Trim();
  const MutexLock lock(mu_);
  // What is still in use then is left to whoever uses it.
  bound_.GiveBack(grown_);
}

RunLane::Block* RunLane::At(std::size_t offset) const {
  return reinterpret_cast<Block*>(range_ + offset);
}

std::size_t RunLane::OffsetOf(const Block* block) const {
  return static_cast<std::size_t>(reinterpret_cast<const std::byte*>(block) - range_);
}

RunLane::Block* RunLane::FindGap(std::size_t need) const {
  Block* best = nullptr;
  int looks = 0;
  for (std::uint64_t bins = filled_bins_ >> BinOf(need) << BinOf(need); bins != 0; bins &= bins - 1) {
    for (Block* gap = gaps_[static_cast<std::size_t>(std::countr_zero(bins))]; gap != nullptr; gap = gap->next) {
      if (gap->size >= need && (best == nullptr || gap->size < best->size)) best = gap;
      if (++looks >= kMostLooks && best != nullptr) return best;
    }
    if (best != nullptr) return best;
  }
  return nullptr;
}

void RunLane::AddGap(Block* block) {
  const std::size_t bin = BinOf(block->size);
  block->gap = true;
  block->previous = nullptr;
  block->next = gaps_[bin];
  if (block->next != nullptr) block->next->previous = block;
  gaps_[bin] = block;
  filled_bins_ |= std::uint64_t{1} << bin;
}

void RunLane::RemoveGap(Block* block) {
  const std::size_t bin = BinOf(block->size);
  (block->previous != nullptr ? block->previous->next : gaps_[bin]) = block->next;
  if (block->next != nullptr) block->next->previous = block->previous;
  if (gaps_[bin] == nullptr) filled_bins_ &= ~(std::uint64_t{1} << bin);
  block->gap = false;
}

void* RunLane::Take(std::size_t size) {
  if (size > size_) return nullptr;
  const std::size_t need = sizeof(Block) + RoundUp(size + kReadBeyond, kAlignment);
  const MutexLock lock(mu_);
  Block* block = FindGap(need);
  if (block == nullptr) {
    if (need > size_ - top_ || !Grow(top_ + need)) return nullptr;
    block = new (range_ + top_) Block{.size = need, .before = last_};
    top_ += need;
    last_ = need;
    longest_ = std::max(longest_, top_);
    return block->data();
  }
  RemoveGap(block);
  if (const std::size_t rest = block->size - need; rest >= sizeof(Block) + kAlignment) {
    block->size = need;
    Block* const split = new (range_ + OffsetOf(block) + need) Block{.size = rest, .before = need};
    At(OffsetOf(split) + rest)->before = rest;  // A gap is never the last block.
    AddGap(split);
  }
  return block->data();
}

void RunLane::GiveBack(void* data) {
  Block* block = static_cast<Block*>(data) - 1;
  const MutexLock lock(mu_);
  const std::size_t offset = OffsetOf(block);
  if (offset + block->size < top_) {
    Block* const after = At(offset + block->size);
    if (after->gap) {
      RemoveGap(after);
      block->size += after->size;
    }
  }
  if (block->before > 0) {
    Block* const before = At(offset - block->before);
    if (before->gap) {
      RemoveGap(before);
      before->size += block->size;
      block = before;
    }
  }
  const std::size_t end = OffsetOf(block) + block->size;
  if (end == top_) {
    top_ = OffsetOf(block);
    last_ = block->before;
    return;
  }
  At(end)->before = block->size;
  AddGap(block);
}

void RunLane::Begin() {
  const MutexLock lock(mu_);
  longest_ = top_;
}

std::uint64_t RunLane::End() {
  const MutexLock lock(mu_);
  needed_ = std::max(needed_, longest_);
  return longest_;
}

bool RunLane::Grow(std::size_t end) {
  if (end <= grown_) return true;
  end = RoundUp(end, kStep);
  if (end > size_ || !bound_.Take(end - grown_)) return false;
  if (::mprotect(range_ + grown_, end - grown_, PROT_READ | PROT_WRITE) != 0) {
    bound_.GiveBack(end - grown_);
    return false;
  }
  grown_ = end;
  return true;
}

void RunLane::Shrink(std::size_t keep) {
  keep = RoundUp(std::max(keep, top_), kStep);
  if (keep >= grown_) return;
  (void)::madvise(range_ + keep, grown_ - keep, MADV_DONTNEED);
  if (::mprotect(range_ + keep, grown_ - keep, PROT_NONE) != 0) return;
  bound_.GiveBack(grown_ - keep);
  grown_ = keep;
}

void RunLane::TrimToUse() {
  const MutexLock lock(mu_);
  Shrink(needed_);
  needed_ = top_;
}

void RunLane::Trim() {
  const MutexLock lock(mu_);
  Shrink(0);
  const std::size_t rest = RoundUp(top_, kPage);
  if (rest < grown_) (void)::madvise(range_ + rest, grown_ - rest, MADV_DONTNEED);
  for (Block* gap : gaps_) {
    for (; gap != nullptr; gap = gap->next) {
      if (gap->size < kLargeGap) continue;
      const std::size_t begin = RoundUp(OffsetOf(gap) + sizeof(Block), kPage);
      const std::size_t end = (OffsetOf(gap) + gap->size) / kPage * kPage;
      (void)::madvise(range_ + begin, end - begin, MADV_DONTNEED);
    }
  }
}

std::size_t RunLane::grown() const {
  const MutexLock lock(mu_);
  return grown_;
}

}  // namespace tandem
