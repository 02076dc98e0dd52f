#include "server/http/body_buffer.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace tandem::http {
namespace {

// The most that is reserved for a client that has announced a body and sent nothing.
constexpr std::size_t kFirstRoom = 64 * 1024;
constexpr std::size_t kFirstRoomUnknown = 4096;
// And once so much has come that it is more than a promise: bodies of the usual size are then copied at most once.
constexpr std::size_t kBegun = 32 * 1024;
constexpr std::size_t kSecondRoom = std::size_t{1} << 20;

}  // namespace

void BodyBuffer::Prepare(std::size_t expected, std::size_t aligned_byte) {
  expected_ = expected;
  begin_ = (kTensorAlignment - aligned_byte % kTensorAlignment) % kTensorAlignment;
}

std::span<std::byte> BodyBuffer::Room(std::size_t wanted, std::size_t here) {
  if (begin_ + size_ >= end() && !Grow(here)) return {};
  const std::span<std::byte> room = buffer_.span().first(end()).subspan(begin_ + size_);
  return room.first(std::min(wanted, room.size()));
}

bool BodyBuffer::Grow(std::size_t here) {
  std::size_t room = size_ * 2;
  if (expected_ == 0) {
    room = std::max(room, kFirstRoomUnknown);
  } else {
    room = std::min(std::max(room, size_ + here < kBegun ? kFirstRoom : kSecondRoom), std::max(expected_, size_ + 1));
  }
  const std::size_t capacity = begin_ + room + kBodySlack;
  BudgetShare share(budget_);
  if (!share.Take(capacity)) return false;
  AlignedBuffer larger;
  try {
    larger = AlignedBuffer(capacity);
  } catch (const std::bad_alloc&) {
    return false;
  }
  if (size_ > 0) std::memcpy(larger.data() + begin_, buffer_.data() + begin_, size_);
  buffer_ = std::move(larger);
  share_ = std::move(share);
  return true;
}

Bytes BodyBuffer::Finish() {
  AlignedBuffer buffer = std::exchange(buffer_, {});
  BudgetShare share = std::exchange(share_, {});
  const std::size_t size = std::exchange(size_, 0);
  if (size == 0) return {};
  return OwnShared(std::move(buffer), std::move(share)).Part(begin_, size);
}

}  // namespace tandem::http
