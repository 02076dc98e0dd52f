#include "server/grpc/header_guard.h"

#include <algorithm>
#include <cstring>

namespace tandem::grpc_front {
namespace {

// RFC 9113, 6.
constexpr std::uint8_t kHeaders = 1;
constexpr std::uint8_t kContinuation = 9;
constexpr std::uint8_t kEndHeaders = 0x4;

}  // namespace

bool HeaderGuard::Follow(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (skip_ > 0) {
      const std::size_t skipped = std::min(skip_, bytes.size());
      skip_ -= skipped;
      bytes = bytes.subspan(skipped);
      continue;
    }
    const std::size_t taken = std::min(kFrameHeadSize - head_size_, bytes.size());
    std::memcpy(head_.data() + head_size_, bytes.data(), taken);
    head_size_ += taken;
    bytes = bytes.subspan(taken);
    if (head_size_ == kFrameHeadSize && !OnFrameHead()) return false;
  }
  return true;
}

bool HeaderGuard::OnFrameHead() {
  head_size_ = 0;
  skip_ = std::size_t{head_[0]} << 16 | std::size_t{head_[1]} << 8 | head_[2];
  const std::uint8_t type = head_[3];
  if (type != kHeaders && type != kContinuation) return true;
  block_bytes_ += skip_;
  if (block_bytes_ > kMaxHeaderBlock || ++block_frames_ > kMaxFramesOfABlock) return false;
  if ((head_[4] & kEndHeaders) != 0) {
    block_bytes_ = 0;
    block_frames_ = 0;
  }
  return true;
}

}  // namespace tandem::grpc_front
