#pragma once

#include <chrono>

#include "api/base/mutex.h"

namespace tandem {

// Monotonic time: deadlines, durations, queues.
using MonotonicTime = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;
// Wall time: only for what people and files read.
using WallTime = std::chrono::time_point<std::chrono::system_clock, std::chrono::nanoseconds>;

// The only way to read the time. Thread-safe. Borrowed by everyone, owned by main() or the test.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual MonotonicTime Now() const = 0;
  [[nodiscard]] virtual WallTime WallNow() const = 0;
};

// The machine's clock. Stateless; RealClock::Instance() lives for ever.
class RealClock final : public Clock {
 public:
  static const RealClock& Instance();
  [[nodiscard]] MonotonicTime Now() const override;
  [[nodiscard]] WallTime WallNow() const override;
};

// A clock that moves only when told to. Thread-safe.
class FakeClock final : public Clock {
 public:
  [[nodiscard]] MonotonicTime Now() const override;
  [[nodiscard]] WallTime WallNow() const override;
  void Advance(std::chrono::nanoseconds by);

 private:
  mutable Mutex mu_;
  std::chrono::nanoseconds since_start_ GUARDED_BY(mu_){std::chrono::hours(1)};
};

}  // namespace tandem
