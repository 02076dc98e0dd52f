#include "loadgen/time_series.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tandem::loadgen {
namespace {

using std::chrono::nanoseconds;

constexpr int kSubBits = 5;
constexpr std::uint64_t kPerOctave = 1U << kSubBits;
constexpr nanoseconds kUnit = std::chrono::microseconds(1);

}  // namespace

std::size_t TimeSeries::BucketOf(nanoseconds latency) {
  const auto units = static_cast<std::uint64_t>(std::max<std::int64_t>(latency / kUnit, 0));
  if (units < 2 * kPerOctave) return static_cast<std::size_t>(units);
  const auto shift = static_cast<std::uint64_t>(std::bit_width(units) - kSubBits - 1);
  return std::min<std::size_t>(shift * kPerOctave + (units >> shift), kBuckets - 1);
}

nanoseconds TimeSeries::MiddleOf(std::size_t bucket) {
  if (bucket < 2 * kPerOctave) return static_cast<std::int64_t>(bucket) * kUnit + kUnit / 2;
  const std::uint64_t shift = bucket / kPerOctave - 1;
  const std::uint64_t low = (bucket - shift * kPerOctave) << shift;
  return static_cast<std::int64_t>(low) * kUnit + (std::int64_t{1} << shift) * kUnit / 2;
}

nanoseconds TimeSeries::Percentile(const Slot& slot, double percent) {
  const std::uint64_t answered = slot.counts.answered();
  const auto rank = static_cast<std::uint64_t>(std::ceil(static_cast<double>(answered) * percent / 100));
  std::uint64_t seen = 0;
  for (std::size_t bucket = 0; bucket < kBuckets && answered > 0; ++bucket) {
    seen += slot.latency[bucket];
    if (seen >= rank) return std::min(MiddleOf(bucket), slot.max);
  }
  return slot.max;
}

void TimeSeries::MakeRoomFor(nanoseconds due) {
  while (due / width_ >= static_cast<std::int64_t>(kMaxSlots)) {
    for (std::size_t i = 0; i < slots_.size(); i += 2) {
      Slot& into = slots_[i / 2];
      if (i > 0) into = slots_[i];
      if (i + 1 == slots_.size()) break;
      const Slot& from = slots_[i + 1];
      into.counts += from.counts;
      into.max = std::max(into.max, from.max);
      for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) into.latency[bucket] += from.latency[bucket];
    }
    slots_.resize((slots_.size() + 1) / 2);
    width_ *= 2;
  }
  const auto slot = static_cast<std::size_t>(due / width_);
  if (slot >= slots_.size()) slots_.resize(slot + 1);
}

void TimeSeries::Record(nanoseconds due, Outcome outcome, nanoseconds latency) {
  due = std::max(due, nanoseconds(0));
  MakeRoomFor(due);
  Slot& slot = slots_[static_cast<std::size_t>(due / width_)];
  slot.counts.Add(outcome);
  if (outcome != Outcome::kOk && outcome != Outcome::kLate) return;
  slot.max = std::max(slot.max, latency);
  ++slot.latency[BucketOf(latency)];
}

std::vector<TimeSeries::Point> TimeSeries::Points() const {
  std::vector<Point> points;
  points.reserve(slots_.size());
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const Slot& slot = slots_[i];
    points.push_back({.at = static_cast<std::int64_t>(i) * width_,
                      .counts = slot.counts,
                      .p50 = Percentile(slot, 50),
                      .p99 = Percentile(slot, 99),
                      .max = slot.max});
  }
  return points;
}

}  // namespace tandem::loadgen
