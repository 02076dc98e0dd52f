#include "loadgen/latency_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tandem::loadgen {
namespace {

// 512 buckets per power of two: the middle of a bucket is at most 1/1024 from anything in it.
constexpr int kSubBits = 9;
constexpr std::int64_t kPerOctave = std::int64_t{1} << kSubBits;
// Below this every nanosecond has its own bucket.
constexpr std::int64_t kLinearEnd = 2 * kPerOctave;
constexpr int kRangeBits = 46;
constexpr std::int64_t kLargest = (std::int64_t{1} << kRangeBits) - 1;
constexpr std::size_t kBuckets = kLinearEnd + (kRangeBits - kSubBits - 1) * kPerOctave;

std::size_t BucketOf(std::int64_t value) {
  if (value < kLinearEnd) return static_cast<std::size_t>(value);
  const int shift = std::bit_width(static_cast<std::uint64_t>(value)) - kSubBits - 1;
  return static_cast<std::size_t>(shift * kPerOctave + (value >> shift));
}

std::int64_t MiddleOf(std::size_t bucket) {
  const auto index = static_cast<std::int64_t>(bucket);
  if (index < kLinearEnd) return index;
  const std::int64_t shift = index / kPerOctave - 1;
  const std::int64_t low = (index - shift * kPerOctave) << shift;
  return low + (std::int64_t{1} << shift) / 2;
}

}  // namespace

LatencyHistogram::LatencyHistogram() : buckets_(kBuckets) {}

void LatencyHistogram::Record(std::chrono::nanoseconds value, std::uint64_t times) {
  if (times == 0) return;
  const std::int64_t ns = std::clamp<std::int64_t>(value.count(), 0, kLargest);
  buckets_[BucketOf(ns)] += times;
  min_ = count_ == 0 ? ns : std::min(min_, ns);
  max_ = std::max(max_, ns);
  count_ += times;
  sum_ += static_cast<double>(ns) * static_cast<double>(times);
}

void LatencyHistogram::Merge(const LatencyHistogram& other) {
  if (other.count_ == 0) return;
  for (std::size_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
  min_ = count_ == 0 ? other.min_ : std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  count_ += other.count_;
  sum_ += other.sum_;
}

void LatencyHistogram::Clear() {
  std::ranges::fill(buckets_, 0);
  count_ = 0;
  min_ = max_ = 0;
  sum_ = 0;
}

std::chrono::nanoseconds LatencyHistogram::Min() const {
  return std::chrono::nanoseconds(min_);
}

std::chrono::nanoseconds LatencyHistogram::Max() const {
  return std::chrono::nanoseconds(max_);
}

std::chrono::nanoseconds LatencyHistogram::Mean() const {
  if (count_ == 0) return std::chrono::nanoseconds(0);
  return std::chrono::nanoseconds(std::llround(sum_ / static_cast<double>(count_)));
}

std::chrono::nanoseconds LatencyHistogram::Percentile(double percent) const {
  if (count_ == 0) return std::chrono::nanoseconds(0);
  // 99.9 % of 1000 is 999.0000000000001 in floating point, and must not become the 1000th.
  const double exact = std::clamp(percent, 0.0, 100.0) / 100 * static_cast<double>(count_);
  const auto rank = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(std::ceil(exact * (1 - 1e-12))), 1, count_);
  if (rank == count_) return Max();
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < kBuckets; ++i) {
    seen += buckets_[i];
    if (seen >= rank) return std::chrono::nanoseconds(std::clamp(MiddleOf(i), min_, max_));
  }
  return Max();
}

LatencySummary Summarise(const LatencyHistogram& histogram) {
  return {.count = histogram.count(),
          .min = histogram.Min(),
          .mean = histogram.Mean(),
          .p50 = histogram.Percentile(50),
          .p90 = histogram.Percentile(90),
          .p95 = histogram.Percentile(95),
          .p99 = histogram.Percentile(99),
          .p99_9 = histogram.Percentile(99.9),
          .p99_99 = histogram.Percentile(99.99),
          .max = histogram.Max()};
}

}  // namespace tandem::loadgen
