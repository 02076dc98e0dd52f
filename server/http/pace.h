#pragma once

#include <chrono>
#include <cstddef>

#include "api/base/clock.h"

namespace tandem::http {

// Tells a transfer that has become too slow. It is judged over one window of time after the other, so that a fast start
// earns nobody the right to stall. Connection's thread only.
class Pace {
 public:
  // `moved` counts bytes from anywhere on; only its growth matters.
  void Begin(MonotonicTime now, std::size_t moved) {
    since_ = now;
    moved_ = moved;
  }

  // To be asked now and then. True when a window has passed with less than the least rate.
  [[nodiscard]] bool TooSlow(MonotonicTime now, std::size_t moved, std::chrono::milliseconds window,
                             std::size_t bytes_per_second) {
    const std::chrono::duration<double> passed = now - since_;
    if (passed <= window) return false;
    const std::size_t grown = moved > moved_ ? moved - moved_ : 0;
    if (static_cast<double>(grown) < passed.count() * static_cast<double>(bytes_per_second)) return true;
    Begin(now, moved);
    return false;
  }

 private:
  MonotonicTime since_;
  std::size_t moved_ = 0;
};

}  // namespace tandem::http
