#pragma once

#include <cstdint>

namespace tandem {

// The lane that a trainer's iterations may use, as it is told of it. Asked on the thread that trains.
class LaneGrant {
 public:
  virtual ~LaneGrant() = default;
  // Bytes of it from now on; 0: none, tensors are the trainer's own.
  [[nodiscard]] virtual std::uint64_t length() const = 0;
  // In an iteration that needs so much: waits for an answer, and gives the length as it is then. Less than asked for:
  // there is no room.
  [[nodiscard]] virtual std::uint64_t Grow(std::uint64_t needed) = 0;
};

}  // namespace tandem
