#include "server/http/body_buffer.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace tandem::http {
namespace {

// The most that is reserved for a client that has announced a body and sent nothing.
constexpr std::size_t kFirstRoom = std::size_t{1} << 20;
constexpr std::size_t kFirstRoomUnknown = 4096;

// Gives its bytes back to the budget when the last tensor lets go.
struct OwnedBody {
  OwnedBody(AlignedBuffer b, std::shared_ptr<BodyBudget> from) : buffer(std::move(b)), budget(std::move(from)) {}
  OwnedBody(const OwnedBody&) = delete;
  OwnedBody& operator=(const OwnedBody&) = delete;
  ~OwnedBody() {
    if (budget) budget->Return(buffer.size());
  }

  AlignedBuffer buffer;
  std::shared_ptr<BodyBudget> budget;
};

}  // namespace

bool BodyBudget::TryTake(std::size_t bytes) {
  const std::size_t before = used_.fetch_add(bytes, std::memory_order_relaxed);
  if (before <= limit_ && bytes <= limit_ - before) return true;
  used_.fetch_sub(bytes, std::memory_order_relaxed);
  return false;
}

BodyBuffer::~BodyBuffer() {
  if (budget_) budget_->Return(buffer_.size());
}

void BodyBuffer::Prepare(std::size_t expected, std::size_t aligned_byte) {
  expected_ = expected;
  begin_ = (kTensorAlignment - aligned_byte % kTensorAlignment) % kTensorAlignment;
}

std::span<std::byte> BodyBuffer::Room(std::size_t wanted) {
  if (begin_ + size_ >= buffer_.size() && !Grow()) return {};
  const std::span<std::byte> room = buffer_.span().subspan(begin_ + size_);
  return room.first(std::min(wanted, room.size()));
}

bool BodyBuffer::Grow() {
  std::size_t room = size_ == 0 ? (expected_ > 0 ? kFirstRoom : kFirstRoomUnknown) : size_ * 2;
  if (expected_ > 0) room = std::min(room, std::max(expected_, size_ + 1));
  const std::size_t capacity = begin_ + room;
  if (budget_ && !budget_->TryTake(capacity)) return false;
  AlignedBuffer larger;
  try {
    larger = AlignedBuffer(capacity);
  } catch (const std::bad_alloc&) {
    if (budget_) budget_->Return(capacity);
    return false;
  }
  if (size_ > 0) std::memcpy(larger.data() + begin_, buffer_.data() + begin_, size_);
  if (budget_) budget_->Return(buffer_.size());
  buffer_ = std::move(larger);
  return true;
}

Bytes BodyBuffer::Finish() {
  if (size_ == 0) {
    if (budget_) budget_->Return(buffer_.size());
    buffer_ = AlignedBuffer();
    return {};
  }
  auto owner = std::make_shared<const OwnedBody>(std::move(buffer_), budget_);
  // A moved-from AlignedBuffer still tells its old size.
  buffer_ = AlignedBuffer();
  const std::span<const std::byte> view = owner->buffer.span().subspan(begin_, std::exchange(size_, 0));
  return {view, std::move(owner)};
}

}  // namespace tandem::http
