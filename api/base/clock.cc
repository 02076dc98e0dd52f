#include "api/base/clock.h"

namespace tandem {

const RealClock& RealClock::Instance() {
  static const RealClock clock;
  return clock;
}

MonotonicTime RealClock::Now() const {
  return std::chrono::steady_clock::now();
}

WallTime RealClock::WallNow() const {
  return std::chrono::system_clock::now();
}

MonotonicTime FakeClock::Now() const {
  MutexLock lock(mu_);
  return MonotonicTime(since_start_);
}

WallTime FakeClock::WallNow() const {
  MutexLock lock(mu_);
  return WallTime(since_start_);
}

void FakeClock::Advance(std::chrono::nanoseconds by) {
  MutexLock lock(mu_);
  since_start_ += by;
}

}  // namespace tandem
