#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>

#include "api/base/buffer.h"

namespace tandem::http {

// How many bytes of request bodies the server holds at once, over all connections, from the first byte read until the
// last tensor that points into a body is gone. Thread-safe. Shared by the server and every body.
class BodyBudget {
 public:
  explicit BodyBudget(std::size_t limit) : limit_(limit) {}

  [[nodiscard]] bool TryTake(std::size_t bytes);
  void Return(std::size_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }
  [[nodiscard]] std::size_t used() const { return used_.load(std::memory_order_relaxed); }

 private:
  const std::size_t limit_;
  std::atomic<std::size_t> used_{0};
};

// The body of one request while it arrives. Grows with the bytes that really come, never with what was announced, and
// keeps one chosen byte of the body at kTensorAlignment. Connection's thread only; what Finish() gives is free of it.
class BodyBuffer {
 public:
  // `budget` may be null: no bound.
  explicit BodyBuffer(std::shared_ptr<BodyBudget> budget) : budget_(std::move(budget)) {}
  ~BodyBuffer();
  BodyBuffer(const BodyBuffer&) = delete;
  BodyBuffer& operator=(const BodyBuffer&) = delete;

  // Before the first byte: the size that is expected, 0 when unknown, and which byte is to be aligned.
  void Prepare(std::size_t expected, std::size_t aligned_byte);

  // Room for the next bytes, at least one and at most `wanted`; empty when there is no memory for it.
  [[nodiscard]] std::span<std::byte> Room(std::size_t wanted);
  // The first `n` bytes of the room have been written.
  void Commit(std::size_t n) { size_ += n; }

  [[nodiscard]] std::size_t size() const { return size_; }
  // Hands over the bytes and is empty again.
  [[nodiscard]] Bytes Finish();

 private:
  [[nodiscard]] bool Grow();

  const std::shared_ptr<BodyBudget> budget_;
  AlignedBuffer buffer_;
  std::size_t begin_ = 0;  // Where the body starts in buffer_, so that the chosen byte is aligned.
  std::size_t size_ = 0;
  std::size_t expected_ = 0;
};

}  // namespace tandem::http
