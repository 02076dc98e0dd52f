#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace tandem {

// How often runs of one model version kept within the time that admission would have relied on when they began. Counted
// by whoever runs batches, read at each scrape. Thread-safe, without locks.
class RunBounds {
 public:
  void Note(std::chrono::nanoseconds took, std::chrono::nanoseconds bound) {
    (took <= bound ? within_ : exceeded_).fetch_add(1, std::memory_order_relaxed);
  }

  [[nodiscard]] std::uint64_t within() const { return within_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t exceeded() const { return exceeded_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> within_{0};
  std::atomic<std::uint64_t> exceeded_{0};
};

}  // namespace tandem
