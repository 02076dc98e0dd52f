#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace tandem::loadgen {

// Counts durations from 1 ns to 19 hours in log-spaced buckets: a percentile is within 0.1 % of the value recorded, and
// exact below 1 µs and at the maximum. Memory is constant (about 150 KB). Used by one thread; histograms of several
// threads are merged.
class LatencyHistogram {
 public:
  LatencyHistogram();

  // Negative durations count as 0, those beyond the range as its end.
  void Record(std::chrono::nanoseconds value, std::uint64_t times = 1);
  void Merge(const LatencyHistogram& other);
  void Clear();

  [[nodiscard]] std::uint64_t count() const { return count_; }
  // Exact; 0 when nothing was recorded.
  [[nodiscard]] std::chrono::nanoseconds Min() const;
  [[nodiscard]] std::chrono::nanoseconds Max() const;
  [[nodiscard]] std::chrono::nanoseconds Mean() const;
  // The smallest duration that at least `percent` % of the recorded ones do not exceed; 0 when nothing was recorded.
  [[nodiscard]] std::chrono::nanoseconds Percentile(double percent) const;

 private:
  std::vector<std::uint64_t> buckets_;
  std::uint64_t count_ = 0;
  std::int64_t min_ = 0;
  std::int64_t max_ = 0;
  double sum_ = 0;
};

// The figures that reports show.
struct LatencySummary {
  std::uint64_t count = 0;
  std::chrono::nanoseconds min{0}, mean{0}, p50{0}, p90{0}, p95{0}, p99{0}, p99_9{0}, p99_99{0}, max{0};
};

[[nodiscard]] LatencySummary Summarise(const LatencyHistogram& histogram);

}  // namespace tandem::loadgen
