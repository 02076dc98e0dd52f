#pragma once

#include <algorithm>
#include <chrono>

#include "api/base/clock.h"

namespace tandem {

// Tells the core that this thread only looks whether something has changed: a sibling or the hypervisor may have it.
inline void CpuRelax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// How long a thread that has just had something to do should look for more before it sleeps. To be woken costs tens of
// microseconds, more than many requests; to look on in vain costs the machine. So it looks for about as long as a
// wake-up takes, and the more often that was in vain, the more rarely it tries. One thread's own; not thread-safe.
class PollBudget {
 public:
  // Zero never polls.
  explicit PollBudget(std::chrono::nanoseconds window) : window_(window) {}

  // Work is done. Until when to look for more; not later than `now`: sleep at once.
  [[nodiscard]] MonotonicTime Begin(MonotonicTime now) {
    if (window_ <= window_.zero()) return now;
    if (rests_left_ > 0) {
      --rests_left_;
      return now;
    }
    return now + window_;
  }
  // How the looking that Begin() allowed has ended.
  void Found() { rests_ = 0; }
  void Missed() {
    rests_ = std::clamp(rests_ * 2, 1, kMostRests);
    rests_left_ = rests_;
  }

 private:
  static constexpr int kMostRests = 64;

  const std::chrono::nanoseconds window_;
  int rests_ = 0;  // How many times to sleep at once after looking in vain.
  int rests_left_ = 0;
};

}  // namespace tandem
