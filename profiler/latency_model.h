#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "api/base/clock.h"
#include "profiler/learnt_run.h"

namespace tandem {

// What a run is expected to take.
struct RunPrediction {
  std::chrono::nanoseconds typical{0};  // Half of the runs take longer.
  std::chrono::nanoseconds high{0};     // One in twenty takes longer. Never less than typical.
  // When a run of that size last ended; the clock's beginning when there was none, and this is a guess from other
  // sizes; kBeforehand when it is known from before the first request, and nobody was refused for it yet.
  MonotonicTime learnt;

  [[nodiscard]] bool guessed() const { return learnt == MonotonicTime{}; }
};

// The time of what was learnt before the first request: later than any, so it is not old.
inline constexpr MonotonicTime kBeforehand = MonotonicTime::max();

// What runs of one model version take, by the number of elements in their batch: running quantiles, so that of
// many runs a single one that was interrupted changes little, and steps that grow again after a pause, so that what was
// learnt long ago is soon forgotten. Thread-safe, without locks: of two observations at once one may be lost, and a
// prediction may be made of parts of both.
class LatencyModel {
 public:
  // Judged by runs of that size. Where there were none, by those of the next sizes below and above, taking a run to be
  // no shorter than a smaller one and no dearer for each element; nullopt when there were none at all.
  [[nodiscard]] std::optional<RunPrediction> Predict(std::int64_t elements) const;

  // `now` is kBeforehand for a run before the first request, like a sample's of a warm-up.
  void Observe(std::int64_t elements, std::chrono::nanoseconds took, MonotonicTime now);

  // What is supposed of a size of which nothing is known, from a run over made-up data; the first real one replaces it.
  void Suppose(std::int64_t elements, std::chrono::nanoseconds took);
  // What an earlier process learnt: as what was learnt before a pause, it holds until a few runs have said otherwise.
  void Recall(const LearntRun& run);
  // What is known from beforehand grows old from now on: somebody was refused for it, which teaches nothing, or runs
  // were compared with it; and what is wrong would be so for ever.
  void BeginToAge(MonotonicTime now);

  // When a run of any size was last learnt; the clock's beginning when none was, kBeforehand as above.
  [[nodiscard]] MonotonicTime newest() const;

  // What runs have taught, smallest first.
  [[nodiscard]] std::vector<LearntRun> Learnt() const;

 private:
  // Sizes up to kExact have a place of their own, larger ones share one for each power of two.
  static constexpr std::int64_t kExact = 64;
  static constexpr std::size_t kPlaces = kExact + 1 + 63;

  struct Place {
    std::atomic<std::int64_t> typical{0};  // Nanoseconds; 0: nothing is known.
    std::atomic<double> spread{1};         // So many times the typical is high.
    std::atomic<std::int64_t> learnt{0};   // Since the clock's beginning.
    std::atomic<std::int64_t> count{0};    // Observations that the steps are to be small for.
  };

  [[nodiscard]] static std::size_t PlaceOf(std::int64_t elements);
  // The fewest elements of those that share a place.
  [[nodiscard]] static std::int64_t SizeOf(std::size_t place);
  [[nodiscard]] std::optional<RunPrediction> Known(std::size_t place) const;
  // As known from beforehand.
  void Set(Place& place, std::int64_t typical, double spread, std::int64_t count);

  std::array<Place, kPlaces> places_;
  std::atomic<bool> beforehand_{false};  // Some place is kBeforehand.
  std::atomic<std::int64_t> newest_{0};  // Since the clock's beginning.
};

}  // namespace tandem
