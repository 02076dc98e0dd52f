#pragma once

#include <atomic>
#include <chrono>

#include "api/base/clock.h"

namespace tandem {

// A clock that moves only when told to, and whose time of day somebody sets forward or back. Thread-safe.
class JumpingClock final : public Clock {
 public:
  [[nodiscard]] MonotonicTime Now() const override { return clock_.Now(); }
  [[nodiscard]] WallTime WallNow() const override { return clock_.WallNow() + wall_off_.load(); }
  void Advance(std::chrono::nanoseconds by) { clock_.Advance(by); }
  // Monotonic time goes on as it was.
  void JumpWall(std::chrono::nanoseconds by) { wall_off_ = wall_off_.load() + by; }

 private:
  FakeClock clock_;
  std::atomic<std::chrono::nanoseconds> wall_off_{std::chrono::nanoseconds(0)};
};

}  // namespace tandem
