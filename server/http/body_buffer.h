#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "api/base/buffer.h"
#include "api/wire/byte_budget.h"

namespace tandem::http {

// Bytes behind every body that may be read, and mean nothing: a JSON reader needs them.
inline constexpr std::size_t kBodySlack = 64;

// The body of one request while it arrives. Grows with the bytes that really come: a body that is only announced takes
// at most 64 KiB, one of which 32 KiB have come 1 MiB, and then no more than twice what is there. Keeps one chosen byte
// of the body at kTensorAlignment. Connection's thread only; what Finish() gives is free of it.
class BodyBuffer {
 public:
  // `budget` may be null: no bound.
  explicit BodyBuffer(std::shared_ptr<ByteBudget> budget) : budget_(std::move(budget)) {}
  BodyBuffer(const BodyBuffer&) = delete;
  BodyBuffer& operator=(const BodyBuffer&) = delete;

  // Before the first byte: the size that is expected, 0 when unknown, and which byte is to be aligned.
  void Prepare(std::size_t expected, std::size_t aligned_byte);

  // Room for the next bytes, at least one and at most `wanted`, of which `here` have come already; empty when there is
  // no memory for it.
  [[nodiscard]] std::span<std::byte> Room(std::size_t wanted, std::size_t here = 0);
  // The first `n` bytes of the room have been written.
  void Commit(std::size_t n) { size_ += n; }

  [[nodiscard]] std::size_t size() const { return size_; }
  // Hands over the bytes, with kBodySlack behind them, and is empty again.
  [[nodiscard]] Bytes Finish();

 private:
  // Where the room ends in buffer_.
  [[nodiscard]] std::size_t end() const { return buffer_.size() - std::min(buffer_.size(), kBodySlack); }
  [[nodiscard]] bool Grow(std::size_t here);

  const std::shared_ptr<ByteBudget> budget_;
  BudgetShare share_;  // For buffer_.
  AlignedBuffer buffer_;
  std::size_t begin_ = 0;  // Where the body starts in buffer_, so that the chosen byte is aligned.
  std::size_t size_ = 0;
  std::size_t expected_ = 0;
};

}  // namespace tandem::http
