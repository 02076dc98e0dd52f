#include "runtimes/onnx/run_memory.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <new>
#include <utility>

#include <malloc.h>
#include <sys/mman.h>

namespace tandem {
namespace {

// So many runs later memory goes back that none of them needed: one huge request must not keep it for ever.
constexpr std::uint64_t kTurnsPerTrim = 1024;
// More than any machine has; addresses are not endless either.
constexpr std::uint64_t kLongestLane = std::uint64_t{1} << 40;
// As ONNX Runtime's own allocator has it: kernels read a little beyond the end.
constexpr std::size_t kReadBeyond = 32;

// Of the run that the thread is in; null: it is in none.
thread_local RunLane* current_lane = nullptr;

}  // namespace

RunMemory::RunMemory(std::uint64_t bytes, OrtPtr<OrtMemoryInfo> info)
    : bytes_(bytes), info_(std::move(info)), bound_(bytes) {
  callbacks_.memory = this;
  callbacks_.version = ORT_API_VERSION;
  callbacks_.Alloc = [](OrtAllocator* self, std::size_t size) {
    return static_cast<Callbacks*>(self)->memory->Allocate(size);
  };
  callbacks_.Reserve = [](OrtAllocator* self, std::size_t size) {
    return static_cast<Callbacks*>(self)->memory->Reserve(size);
  };
  callbacks_.Free = [](OrtAllocator* self, void* data) { static_cast<Callbacks*>(self)->memory->Free(data); };
  callbacks_.Info = [](const OrtAllocator* self) -> const OrtMemoryInfo* {
    return static_cast<const Callbacks*>(self)->memory->info_.get();
  };
}

Result<std::shared_ptr<RunMemory>> RunMemory::Make(const OrtApi& api, std::uint64_t bytes) {
  OrtMemoryInfo* raw = nullptr;
  // Only allocators of ONNX Runtime itself may call themselves arenas.
  TANDEM_TRY(CheckOrt(api, api.CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &raw), "memory kind"));
  std::shared_ptr<RunMemory> memory(new RunMemory(bytes, {raw, {api.ReleaseMemoryInfo}}));
  TANDEM_TRY(memory->ReserveLanes());
  return memory;
}

Status RunMemory::ReserveLanes() {
  const std::uint64_t longest = std::clamp<std::uint64_t>(bytes_, RunLane::kStep, kLongestLane);
  length_ = (longest + RunLane::kStep - 1) / RunLane::kStep * RunLane::kStep;
  for (std::size_t lanes = kMostLanes; lanes > 0; lanes /= 2) {
    void* const addresses = ::mmap(nullptr, lanes * length_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                                   /*fd=*/-1, /*offset=*/0);
    if (addresses == MAP_FAILED) continue;
    range_ = static_cast<std::byte*>(addresses);
    for (std::size_t i = 0; i < lanes; ++i) {
      lanes_.push_back(std::make_unique<RunLane>(range_ + i * length_, length_, bound_));
    }
    return {};
  }
  return Fail(ErrorCode::kUnavailable, "addresses for runs of {} bytes cannot be had", length_);
}

RunMemory::~RunMemory() {
  const std::size_t size = lanes_.size() * length_;
  lanes_.clear();
  if (range_ != nullptr) ::munmap(range_, size);
}

void* RunMemory::Allocate(std::size_t size) {
  if (size == 0) return nullptr;
  RunLane* const lane = current_lane;
  if (lane == nullptr) return Reserve(size);
  void* data = lane->Take(size);
  if (data == nullptr) {
    // What other lanes have kept from earlier runs may be enough.
    Trim();
    data = lane->Take(size);
  }
  if (data == nullptr) throw std::bad_alloc();
  return data;
}

void* RunMemory::Reserve(std::size_t size) {
  if (size == 0) return nullptr;
  void* data = nullptr;
  if (size > bytes_ || reserved_.load(std::memory_order_relaxed) > bytes_ - size ||
      ::posix_memalign(&data, RunLane::kAlignment, size + kReadBeyond) != 0) {
    throw std::bad_alloc();
  }
  reserved_.fetch_add(::malloc_usable_size(data), std::memory_order_relaxed);
  TellBound();
  return data;
}

void RunMemory::Free(void* data) {
  if (data == nullptr) return;
  const auto offset = std::bit_cast<std::uintptr_t>(data) - std::bit_cast<std::uintptr_t>(range_);
  if (offset >= lanes_.size() * length_) return FreeReserved(data);
  lanes_[offset / length_]->GiveBack(data);
}

void RunMemory::FreeReserved(void* data) {
  reserved_.fetch_sub(::malloc_usable_size(data), std::memory_order_relaxed);
  ::free(data);
  TellBound();
}

void RunMemory::SetAside(std::uint64_t bytes) {
  aside_.store(bytes, std::memory_order_relaxed);
  TellBound();
}

void RunMemory::TellBound() {
  {
    // Of two threads that have changed a sum the later one sees both.
    const MutexLock lock(telling_);
    // Weights are in both sums where a session keeps them itself.
    bound_.SetAside(std::max(aside_.load(std::memory_order_relaxed), reserved_.load(std::memory_order_relaxed)));
  }
  // What lanes have kept is the first to go.
  if (bound_.exceeded()) Trim();
}

void RunMemory::Trim() {
  for (const auto& lane : lanes_) lane->Trim();
}

std::size_t RunMemory::TakeLane() {
  std::uint64_t taken = taken_.load(std::memory_order_relaxed);
  for (;;) {
    // The first that is free, so that the same few are used again and again.
    const auto lane = static_cast<std::size_t>(std::countr_one(taken));
    if (lane >= lanes_.size()) return kMostLanes;
    if (taken_.compare_exchange_weak(taken, taken | std::uint64_t{1} << lane, std::memory_order_acquire)) return lane;
  }
}

void RunMemory::GiveBackLane(std::size_t lane) {
  taken_.fetch_and(~(std::uint64_t{1} << lane), std::memory_order_release);
  if (turns_.fetch_add(1, std::memory_order_relaxed) % kTurnsPerTrim != kTurnsPerTrim - 1) return;
  for (const auto& any : lanes_) any->TrimToUse();
}

RunMemory::Turn::Turn(RunMemory& memory) : memory_(memory), outer_(current_lane), lane_(memory.TakeLane()) {
  current_lane = lane_ < kMostLanes ? memory_.lanes_[lane_].get() : nullptr;
  if (current_lane != nullptr) current_lane->Begin();
}

RunMemory::Turn::~Turn() {
  End();
}

std::uint64_t RunMemory::Turn::End() {
  if (lane_ == kMostLanes) return 0;
  const std::uint64_t needed = memory_.lanes_[lane_]->End();
  current_lane = outer_;
  memory_.GiveBackLane(std::exchange(lane_, kMostLanes));
  return needed;
}

}  // namespace tandem
