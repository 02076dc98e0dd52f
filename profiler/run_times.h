#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace tandem {

// How long runs of a model version take, by the number of elements in their batch. Follows a longer run at once and
// shorter ones slowly: who plans with it had better be early. Thread-safe, without locks: of two observations at once,
// one may be lost.
class RunTimes {
 public:
  // What a run over so many elements is expected to take: judged by runs of about that size, else by the largest of the
  // smaller ones that have been seen; 0 when there was none.
  [[nodiscard]] std::chrono::nanoseconds Expected(std::int64_t elements) const;
  void Observe(std::int64_t elements, std::chrono::nanoseconds took);

 private:
  // One for each number of bits that a count can have.
  static constexpr std::size_t kSizeClasses = 64;

  std::array<std::atomic<std::int64_t>, kSizeClasses> ns_{};
};

}  // namespace tandem
