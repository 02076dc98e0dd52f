#pragma once

#include <atomic>
#include <chrono>

#include "api/base/clock.h"

namespace tandem {

// What requests of one model are used to say for themselves: what is not said in their heads, one cannot know before
// their bodies are read. Thread-safe.
class RequestHabits {
 public:
  // A body was read, and named a deadline or a priority, or neither. Writes nothing once all is known.
  void Note(bool named) {
    if (named) {
      if (!named_.load(std::memory_order_relaxed)) named_.store(true, std::memory_order_relaxed);
    } else if (read_.load(std::memory_order_relaxed) < kEnough) {
      read_.fetch_add(1, std::memory_order_relaxed);
    }
  }
  // Many bodies were read, and none of them named either.
  [[nodiscard]] bool name_nothing() const {
    return !named_.load(std::memory_order_relaxed) && read_.load(std::memory_order_relaxed) >= kEnough;
  }
  // Whether it is time to read a body for no other reason than to see whether that still holds.
  [[nodiscard]] bool TryProbe(MonotonicTime now) {
    MonotonicTime last = probed_.load(std::memory_order_relaxed);
    return now - last >= kProbeEvery && probed_.compare_exchange_strong(last, now, std::memory_order_relaxed);
  }

 private:
  static constexpr int kEnough = 32;
  static constexpr std::chrono::seconds kProbeEvery{1};

  std::atomic<int> read_{0};  // That named nothing.
  std::atomic<bool> named_{false};
  std::atomic<MonotonicTime> probed_{MonotonicTime{}};
};

}  // namespace tandem
