#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <vector>

#include "loadgen/outcome.h"

namespace tandem::loadgen {

// How a run went along its time, for a plot. Requests are put into slots of equal width by when they were due; when a
// run outgrows the slots, each takes in its neighbour and is twice as wide. So memory is constant (about 2 MB) however
// long the run is. Used by one thread.
class TimeSeries {
 public:
  static constexpr std::size_t kMaxSlots = 512;

  TimeSeries() = default;
  explicit TimeSeries(std::chrono::nanoseconds width) : width_(width) {}

  // `due` counts from the start of the run; `latency` matters only for what was answered.
  void Record(std::chrono::nanoseconds due, Outcome outcome, std::chrono::nanoseconds latency);

  [[nodiscard]] std::chrono::nanoseconds width() const { return width_; }

  struct Point {
    std::chrono::nanoseconds at{0};  // Where the slot begins.
    OutcomeCounts counts;
    // Of what was answered, within 2 %; 0 when nothing was. The maximum is exact.
    std::chrono::nanoseconds p50{0}, p99{0}, max{0};
  };
  // One for each slot from the start to the last request, also for those in which nothing was due.
  [[nodiscard]] std::vector<Point> Points() const;

 private:
  // 32 buckets per power of two, in units of 1 µs, up to 19 hours.
  static constexpr std::size_t kBuckets = 64 + 31 * 32;
  struct Slot {
    OutcomeCounts counts;
    std::chrono::nanoseconds max{0};
    std::array<std::uint32_t, kBuckets> latency{};
  };

  [[nodiscard]] static std::size_t BucketOf(std::chrono::nanoseconds latency);
  [[nodiscard]] static std::chrono::nanoseconds MiddleOf(std::size_t bucket);
  [[nodiscard]] static std::chrono::nanoseconds Percentile(const Slot& slot, double percent);
  void MakeRoomFor(std::chrono::nanoseconds due);

  std::chrono::nanoseconds width_ = std::chrono::milliseconds(100);
  std::vector<Slot> slots_;
};

}  // namespace tandem::loadgen
