#include "server/http/output_queue.h"

#include <array>
#include <utility>

namespace tandem::http {
namespace {

constexpr std::size_t kPieces = 16;
// A fast reader must not keep the loop from the other connections; the poller brings us back at once.
constexpr int kRounds = 16;

}  // namespace

void OutputQueue::Add(std::string text) {
  if (text.empty()) return;
  size_ += text.size();
  segments_.push_back({std::move(text), {}});
}

void OutputQueue::Add(Bytes bytes) {
  if (bytes.view.empty()) return;
  size_ += bytes.size();
  segments_.push_back({{}, std::move(bytes)});
}

void OutputQueue::Clear() {
  segments_ = {};
  first_ = offset_ = size_ = 0;
}

IoResult OutputQueue::Flush(Stream& stream) {
  std::size_t total = 0;
  for (int round = 0; round < kRounds && size_ > 0; ++round) {
    std::array<std::span<const std::byte>, kPieces> pieces;
    std::size_t count = 0;
    for (std::size_t i = first_; i < segments_.size() && count < kPieces; ++i) {
      pieces[count++] = segments_[i].view().subspan(i == first_ ? offset_ : 0);
    }
    const IoResult result = stream.Write(std::span(pieces).first(count));
    if (result.kind == IoResult::Kind::kWouldBlock) break;
    if (result.kind != IoResult::Kind::kBytes) return {IoResult::Kind::kBroken};
    Drop(result.bytes);
    total += result.bytes;
  }
  return total > 0 ? IoResult{IoResult::Kind::kBytes, total} : IoResult{IoResult::Kind::kWouldBlock};
}

void OutputQueue::Drop(std::size_t n) {
  size_ -= n;
  while (n > 0) {
    Segment& segment = segments_[first_];
    const std::size_t left = segment.view().size() - offset_;
    if (n < left) {
      offset_ += n;
      return;
    }
    n -= left;
    offset_ = 0;
    segment = {};
    ++first_;
  }
  if (size_ == 0) {
    segments_.clear();
    first_ = 0;
    return;
  }
  // A stream whose reader keeps a little behind would otherwise never let the front go.
  if (first_ > 64 && first_ > segments_.size() / 2) {
    segments_.erase(segments_.begin(), segments_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }
}

}  // namespace tandem::http
