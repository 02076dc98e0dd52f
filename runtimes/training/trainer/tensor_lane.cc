#include "runtimes/training/trainer/tensor_lane.h"

#include <algorithm>
#include <cstring>

#include <sys/mman.h>

#include "api/base/errno_text.h"

namespace tandem::training {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::size_t RoundUp(std::size_t size, std::size_t to) {
  return (size + to - 1) / to * to;
}

}  // namespace

Result<std::unique_ptr<TensorLane>> TensorLane::Map(int fd, std::size_t reach) {
  reach = RoundUp(reach, kHugePage);
  void* const addresses =
      ::mmap(nullptr, reach + kHugePage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, /*fd=*/-1, 0);
  if (addresses == MAP_FAILED) return Fail(ErrorCode::kInternal, "there are no addresses for a lane: {}", ErrnoText());
  // Where the lane lies in huge pages they are seen as such.
  const auto first = reinterpret_cast<std::uintptr_t>(addresses);
  const std::size_t skipped = RoundUp(first, kHugePage) - first;
  std::byte* const range = static_cast<std::byte*>(addresses) + skipped;
  if (skipped > 0) ::munmap(addresses, skipped);
  ::munmap(range + reach, kHugePage - skipped);
  std::unique_ptr<TensorLane> lane(new TensorLane(fd, range, reach));
  if (!lane->MapPages(0, reach)) return Fail(ErrorCode::kInternal, "a lane cannot be mapped: {}", ErrnoText());
  return lane;
}

TensorLane::~TensorLane() {
  ::munmap(range_, reach_);
}

bool TensorLane::MapPages(std::size_t offset, std::size_t size) const {
  return ::mmap(range_ + offset, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd_,
                static_cast<off_t>(offset)) != MAP_FAILED;
}

bool TensorLane::MakePrivate(std::size_t offset, std::size_t size) const {
  void* const copy = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, /*fd=*/-1, 0);
  if (copy == MAP_FAILED) return false;
  std::memcpy(copy, range_ + offset, size);
  // In one step: whoever reads it meanwhile finds the one or the other, and they are alike.
  if (::mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, range_ + offset) != MAP_FAILED) return true;
  ::munmap(copy, size);
  return false;
}

void TensorLane::SetLength(std::size_t bytes) {
  const MutexLock lock(mu_);
  length_ = std::min(bytes, reach_) / kPage * kPage;
}

void* TensorLane::Take(std::size_t size) {
  const std::size_t rounded = RoundUp(size, kPage);
  if (rounded < size || rounded > reach_) return nullptr;
  const MutexLock lock(mu_);
  const std::size_t offset = places_.Take(rounded);
  if (offset + rounded > length_) {
    needed_ = offset + rounded;
    places_.GiveBack(offset);
    return nullptr;
  }
  blocks_[offset] = {.size = rounded};
  return range_ + offset;
}

std::size_t TensorLane::GiveBack(void* data) {
  const auto offset = static_cast<std::size_t>(static_cast<std::byte*>(data) - range_);
  const MutexLock lock(mu_);
  const auto block = blocks_.find(offset);
  const std::size_t size = block->second.size;
  // What cannot be mapped again stays taken: nobody is given addresses behind which the lane is not.
  const bool free = !block->second.own || MapPages(offset, size);
  blocks_.erase(block);
  if (free) places_.GiveBack(offset);
  return size;
}

std::size_t TensorLane::needed() const {
  const MutexLock lock(mu_);
  return needed_;
}

Result<std::size_t> TensorLane::Settle() {
  const MutexLock lock(mu_);
  std::size_t moved = 0;
  for (auto& [offset, block] : blocks_) {
    if (block.own) continue;
    if (!MakePrivate(offset, block.size)) {
      return Fail(ErrorCode::kTooLarge, "{} bytes outlive an iteration, and there is no memory for them: {}",
                  block.size, ErrnoText());
    }
    block.own = true;
    moved += block.size;
  }
  return moved;
}

}  // namespace tandem::training
