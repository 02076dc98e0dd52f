#include "profiler/latency_model.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tandem {
namespace {

using std::chrono::nanoseconds;

constexpr double kHighShare = 0.95;
// By so much, as a share, an observation moves what is known.
constexpr double kStep = 0.03;
// So many are averaged first: whatever the first one was, it is soon forgotten.
constexpr std::int64_t kAveraged = 20;
// A model that was not run for so long may have changed its ways: it is averaged anew, from here.
constexpr std::chrono::seconds kForget{1};
constexpr std::int64_t kCountAfterPause = 4;
// Of a model that was run once.
constexpr double kFirstSpread = 1.25;

// Moves an estimate of a quantile towards where `share` of what is observed lies below it, but not past what was
// observed. Relative steps: what takes microseconds and what takes seconds is learnt equally fast.
double Moved(double estimate, double observed, double share) {
  if (observed > estimate) return std::min(observed, estimate * (1 + 2 * kStep * share));
  return std::max(observed, estimate * (1 - 2 * kStep * (1 - share)));
}

// The average of magnitudes, later ones counting more; `count` were seen before.
double Averaged(double estimate, double observed, std::int64_t count) {
  return estimate * std::pow(observed / estimate, 2.0 / static_cast<double>(count + 2));
}

// Not beyond what times can be added to.
nanoseconds Scaled(nanoseconds time, double by) {
  constexpr double kMost = 1e9 * 86'400 * 365;
  return nanoseconds(std::llround(std::min(kMost, static_cast<double>(time.count()) * by)));
}

// Between two runs of other sizes, on the straight line.
RunPrediction Between(const RunPrediction& small, const RunPrediction& large, double part) {
  const auto on_line = [part](nanoseconds a, nanoseconds b) { return b <= a ? a : a + Scaled(b - a, part); };
  return {.typical = on_line(small.typical, large.typical), .high = on_line(small.high, large.high), .learnt = {}};
}

}  // namespace

std::size_t LatencyModel::PlaceOf(std::int64_t elements) {
  if (elements <= kExact) return static_cast<std::size_t>(std::max<std::int64_t>(elements, 0));
  return kExact + static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(elements) / kExact));
}

std::int64_t LatencyModel::SizeOf(std::size_t place) {
  if (place <= kExact) return static_cast<std::int64_t>(place);
  return kExact << (place - kExact - 1);
}

std::optional<RunPrediction> LatencyModel::Known(std::size_t place) const {
  const Place& p = places_[place];
  const std::int64_t typical = p.typical.load(std::memory_order_relaxed);
  if (typical == 0) return std::nullopt;
  return RunPrediction{.typical = nanoseconds(typical),
                       .high = Scaled(nanoseconds(typical), p.spread.load(std::memory_order_relaxed)),
                       .learnt = MonotonicTime(nanoseconds(p.learnt.load(std::memory_order_relaxed)))};
}

std::optional<RunPrediction> LatencyModel::Predict(std::int64_t elements) const {
  const std::size_t place = PlaceOf(elements);
  if (auto known = Known(place)) return known;
  std::size_t below = place;
  while (below > 0 && !Known(below)) --below;
  std::size_t above = place;
  while (above + 1 < kPlaces && !Known(above)) ++above;
  const auto small = Known(below);
  const auto large = Known(above);
  if (!small && !large) return std::nullopt;
  if (!small) return RunPrediction{.typical = large->typical, .high = large->high, .learnt = {}};
  // Somebody may have learnt of it meanwhile.
  if (above == below) return small;
  const auto size = static_cast<double>(elements);
  const double small_size = std::max<double>(1, static_cast<double>(SizeOf(below)));
  if (large) return Between(*small, *large, (size - small_size) / (static_cast<double>(SizeOf(above)) - small_size));
  return RunPrediction{.typical = Scaled(small->typical, size / small_size),
                       .high = Scaled(small->high, size / small_size),
                       .learnt = {}};
}

void LatencyModel::Observe(std::int64_t elements, nanoseconds took, MonotonicTime now) {
  Place& place = places_[PlaceOf(elements)];
  const std::int64_t observed = std::max<std::int64_t>(1, took.count());
  const std::int64_t typical = place.typical.load(std::memory_order_relaxed);
  const std::int64_t ended = now.time_since_epoch().count();
  const std::int64_t before = place.learnt.exchange(ended, std::memory_order_relaxed);
  newest_.store(ended, std::memory_order_relaxed);
  std::int64_t count = place.count.load(std::memory_order_relaxed);
  if (nanoseconds(ended - before) - took > kForget) count = std::min(count, kCountAfterPause);
  if (now == kBeforehand) {
    beforehand_.store(true, std::memory_order_relaxed);
    count = std::min(count, kCountAfterPause - 1);
  }
  place.count.store(count + 1, std::memory_order_relaxed);
  if (typical == 0) {
    place.spread.store(kFirstSpread, std::memory_order_relaxed);
    place.typical.store(observed, std::memory_order_relaxed);
    return;
  }
  const auto was = static_cast<double>(typical);
  const auto is = static_cast<double>(observed);
  const double moved = count < kAveraged ? Averaged(was, is, count) : Moved(was, is, 0.5);
  place.typical.store(std::max<std::int64_t>(1, std::llround(moved)), std::memory_order_relaxed);
  // As a multiple of the typical, so that both follow a model that changes; in small steps from the first, because of
  // one run in twenty little is learnt at once.
  const double spread = place.spread.load(std::memory_order_relaxed);
  place.spread.store(std::max(1.0, Moved(spread, is / was, kHighShare)), std::memory_order_relaxed);
}

void LatencyModel::Suppose(std::int64_t elements, nanoseconds took) {
  Place& place = places_[PlaceOf(elements)];
  if (place.typical.load(std::memory_order_relaxed) != 0) return;
  Set(place, std::max<std::int64_t>(1, took.count()), kFirstSpread, 0);
}

void LatencyModel::Recall(const LearntRun& run) {
  Set(places_[PlaceOf(run.elements)], std::max<std::int64_t>(1, run.typical.count()), std::max(1.0, run.spread),
      kCountAfterPause);
}

void LatencyModel::Set(Place& place, std::int64_t typical, double spread, std::int64_t count) {
  place.spread.store(spread, std::memory_order_relaxed);
  place.learnt.store(kBeforehand.time_since_epoch().count(), std::memory_order_relaxed);
  place.count.store(count, std::memory_order_relaxed);
  place.typical.store(typical, std::memory_order_relaxed);
  newest_.store(kBeforehand.time_since_epoch().count(), std::memory_order_relaxed);
  beforehand_.store(true, std::memory_order_relaxed);
}

void LatencyModel::BeginToAge(MonotonicTime now) {
  if (!beforehand_.load(std::memory_order_relaxed)) return;
  beforehand_.store(false, std::memory_order_relaxed);
  const auto age = [now](std::atomic<std::int64_t>& learnt) {
    std::int64_t beforehand = kBeforehand.time_since_epoch().count();
    learnt.compare_exchange_strong(beforehand, now.time_since_epoch().count(), std::memory_order_relaxed);
  };
  for (Place& place : places_) age(place.learnt);
  age(newest_);
}

MonotonicTime LatencyModel::newest() const {
  return MonotonicTime(nanoseconds(newest_.load(std::memory_order_relaxed)));
}

std::vector<LearntRun> LatencyModel::Learnt() const {
  std::vector<LearntRun> runs;
  for (std::size_t i = 0; i < kPlaces; ++i) {
    const Place& place = places_[i];
    const std::int64_t typical = place.typical.load(std::memory_order_relaxed);
    if (typical == 0 || place.count.load(std::memory_order_relaxed) == 0) continue;
    runs.push_back({.elements = SizeOf(i),
                    .typical = nanoseconds(typical),
                    .spread = place.spread.load(std::memory_order_relaxed)});
  }
  return runs;
}

}  // namespace tandem
