#include "runtimes/training/trainer/training_heap.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <utility>

#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <malloc.h>
#include <sys/mman.h>

#include "api/base/mutex.h"
#include "runtimes/training/trainer/block_map.h"
#include "runtimes/training/trainer/tensor_lane.h"

namespace tandem::training {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
// Addresses, not memory: more than a machine has.
constexpr std::size_t kReserved = std::size_t{1} << 40;
// Smaller tensors are the C library's affair: they are many, and among large ones they would hold gaps apart.
constexpr std::size_t kSmallest = std::size_t{256} << 10;
constexpr std::size_t kPage = 4096;

std::size_t RoundUp(std::size_t size, std::size_t to) {
  return (size + to - 1) / to * to;
}

// Addresses for a lane, as above.
constexpr std::size_t kLaneReach = std::size_t{1} << 38;

// A lane, and who says how long it is. Training thread only, but for what is freed.
struct GivenLane {
  std::unique_ptr<TensorLane> memory;
  LaneGrant* grant = nullptr;
  bool in_use = false;  // It had a length at the last boundary.
  std::optional<std::uint64_t> outgrown;
};
// Never destroyed, as tensors may outlive main().
GivenLane* given_lane = nullptr;
// Whether this thread makes tensors of an iteration that has a lane.
thread_local bool within_lane = false;

void* TakeInLane(std::size_t size) {
  for (;;) {
    if (void* const data = given_lane->memory->Take(size); data != nullptr) return data;
    const std::size_t needed = given_lane->memory->needed();
    const std::uint64_t length = given_lane->grant->Grow(needed);
    if (length < needed) {
      given_lane->outgrown = needed;
      throw std::bad_alloc();
    }
    given_lane->memory->SetLength(length);
  }
}

// Where ATen's large tensors live: one range of addresses, of which as much is memory as was ever needed at once. Never
// destroyed, as tensors may outlive main(). Any thread.
class TensorHeap final : public c10::Allocator {
 public:
  // Null where so many addresses cannot be had.
  static TensorHeap* Make() {
    void* const addresses =
        ::mmap(nullptr, kReserved + kHugePage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, /*fd=*/-1, /*offset=*/0);
    if (addresses == MAP_FAILED) return nullptr;
    const auto first = reinterpret_cast<std::uintptr_t>(addresses);
    std::byte* const range = static_cast<std::byte*>(addresses) + (RoundUp(first, kHugePage) - first);
    // Where the system has none it works as before.
    (void)::madvise(range, kReserved, MADV_HUGEPAGE);
    return new TensorHeap(range);
  }

  c10::DataPtr allocate(std::size_t size) override {
    void* data = size < kSmallest ? nullptr : within_lane ? TakeInLane(size) : Take(size);
    if (data != nullptr) {
      Count(RoundUp(size, kPage));
    } else {
      // Also where memory has run out: it has the words for that.
      data = c10::alloc_cpu(size);
      Count(::malloc_usable_size(data));
    }
    return {data, data, &Free, c10::Device(c10::DeviceType::CPU)};
  }
  [[nodiscard]] c10::DeleterFnPtr raw_deleter() const override { return &Free; }
  void copy_data(void* to, const void* from, std::size_t size) const override { default_copy_data(to, from, size); }

  // Gives the memory of what is free back to the system; the end of it also to what the process may have.
  void Drop() {
    const MutexLock lock(mu_);
    for (const auto& [offset, size] : blocks_.FreeParts()) {
      if (offset >= grown_) break;
      const std::size_t end = std::min(offset + size, grown_);
      (void)::madvise(range_ + offset, end - offset, MADV_DONTNEED);
      const std::size_t keep = RoundUp(offset, kHugePage);
      if (offset + size < blocks_.end() || keep >= grown_) continue;
      if (::mprotect(range_ + keep, grown_ - keep, PROT_NONE) == 0) grown_ = keep;
    }
  }
  [[nodiscard]] TensorBytes Counted() const { return {.live = live_.load(), .peak = peak_.load()}; }
  void ForgetPeak() { peak_.store(live_.load()); }
  static TensorHeap* current() { return current_; }

 private:
  explicit TensorHeap(std::byte* range) : range_(range) { current_ = this; }

  static void Free(void* data) {
    // Small ones, and what the range had no room for, are the C library's.
    if (current_->Owns(data)) {
      current_->GiveBack(data);
    } else if (given_lane != nullptr && given_lane->memory->Owns(data)) {
      current_->live_.fetch_sub(given_lane->memory->GiveBack(data), std::memory_order_relaxed);
    } else {
      current_->live_.fetch_sub(::malloc_usable_size(data), std::memory_order_relaxed);
      c10::free_cpu(data);
    }
  }

  [[nodiscard]] bool Owns(const void* data) const { return data >= range_ && data < range_ + kReserved; }

  // Null when there is no more memory.
  void* Take(std::size_t size) {
    if (size > kReserved / 2) return nullptr;
    const std::size_t rounded = RoundUp(size, kPage);
    const MutexLock lock(mu_);
    const std::size_t offset = blocks_.Take(rounded);
    if (!Grow(offset + rounded)) {
      blocks_.GiveBack(offset);
      return nullptr;
    }
    return range_ + offset;
  }

  void GiveBack(void* data) {
    const MutexLock lock(mu_);
    const std::size_t size = blocks_.GiveBack(static_cast<std::size_t>(static_cast<std::byte*>(data) - range_));
    live_.fetch_sub(size, std::memory_order_relaxed);
  }

  void Count(std::uint64_t bytes) {
    const std::uint64_t live = live_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    std::uint64_t peak = peak_.load(std::memory_order_relaxed);
    while (live > peak && !peak_.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {
    }
  }

  // Makes memory of the range up to there; false when the process may not have so much.
  bool Grow(std::size_t end) REQUIRES(mu_) {
    if (end <= grown_) return true;
    end = RoundUp(end, kHugePage);
    if (end > kReserved || ::mprotect(range_ + grown_, end - grown_, PROT_READ | PROT_WRITE) != 0) return false;
    grown_ = end;
    return true;
  }

  // A deleter carries nothing of its own.
  static TensorHeap* current_;

  // Constant after construction.
  std::byte* const range_;

  Mutex mu_;
  BlockMap blocks_ GUARDED_BY(mu_);
  std::size_t grown_ GUARDED_BY(mu_) = 0;

  std::atomic<std::uint64_t> live_{0};
  std::atomic<std::uint64_t> peak_{0};
};

TensorHeap* TensorHeap::current_ = nullptr;

}  // namespace

void KeepFreedMemory() {
  // For what is no tensor: batches that are read ahead, scratch memory of libraries. Nothing is given back at the top;
  // larger blocks are mapped, and go with their pages.
  constexpr int kLargestKept = 16 << 20;
  mallopt(M_MMAP_THRESHOLD, kLargestKept);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
#ifndef TANDEM_SANITIZED  // Sanitizers watch over memory of their own.
  if (TensorHeap* const heap = TensorHeap::Make(); heap != nullptr) c10::SetCPUAllocator(heap, /*priority=*/1);
#endif
}

std::optional<TensorBytes> CountTensorBytes() {
  if (TensorHeap::current() == nullptr) return std::nullopt;
  return TensorHeap::current()->Counted();
}

void ForgetTensorPeak() {
  if (TensorHeap::current() != nullptr) TensorHeap::current()->ForgetPeak();
}

void DropFreedMemory() {
  if (TensorHeap::current() != nullptr) TensorHeap::current()->Drop();
  malloc_trim(/*pad=*/0);
}

Status GiveLane(int fd, LaneGrant& grant) {
  if (TensorHeap::current() == nullptr) return Fail(ErrorCode::kUnsupported, "tensors have no memory of their own");
  TANDEM_ASSIGN(auto memory, TensorLane::Map(fd, kLaneReach));
  given_lane = new GivenLane{.memory = std::move(memory), .grant = &grant};
  return {};
}

Result<std::uint64_t> LeaveLane() {
  if (given_lane == nullptr) return 0;
  TANDEM_ASSIGN(const std::size_t moved, given_lane->memory->Settle());
  if (given_lane->grant->length() > 0 && !std::exchange(given_lane->in_use, true)) DropFreedMemory();
  return moved;
}

IterationTensors::IterationTensors() {
  if (given_lane == nullptr) return;
  const std::uint64_t length = given_lane->grant->length();
  given_lane->outgrown.reset();
  within_lane = length > 0;
  if (within_lane) given_lane->memory->SetLength(length);
}

IterationTensors::~IterationTensors() {
  within_lane = false;
}

bool IterationTensors::in_lane() const {
  return within_lane;
}

std::optional<std::uint64_t> IterationTensors::outgrown() const {
  return given_lane == nullptr ? std::nullopt : given_lane->outgrown;
}

}  // namespace tandem::training
