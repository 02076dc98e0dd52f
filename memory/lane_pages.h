#pragma once

#include <cstdint>
#include <memory>

#include "api/base/result.h"

namespace tandem {

// The memory of a lane on a CPU: a file without a name, that the trainers of its jobs map and use in their turns. It is
// as long as the lane, and what is behind its end can be used by nobody. Pages are there once somebody has written to
// them, and stay as they are from turn to turn: nothing is copied, and nothing cleared but by Clear(). Not thread-safe.
class LanePages {
 public:
  // Of no length. kUnavailable: there are no descriptors left.
  [[nodiscard]] static Result<std::unique_ptr<LanePages>> Create();
  ~LanePages();
  LanePages(const LanePages&) = delete;
  LanePages& operator=(const LanePages&) = delete;

  // For those who map it.
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] std::uint64_t length() const { return length_; }

  // Longer at any time; shorter only while nobody's turn is, as what is cut off is gone. kTooLarge.
  [[nodiscard]] Status SetLength(std::uint64_t bytes);
  // Gives all pages back to the system, so that the next one finds zeros.
  void Clear() const;

 private:
  explicit LanePages(int fd) : fd_(fd) {}

  const int fd_;
  std::uint64_t length_ = 0;
};

}  // namespace tandem
