#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "api/base/clock.h"

namespace tandem {

// What a run is expected to take.
struct RunPrediction {
  std::chrono::nanoseconds typical{0};  // Half of the runs take longer.
  std::chrono::nanoseconds high{0};     // One in twenty takes longer. Never less than typical.
  // When a run of that size last ended; the clock's beginning when there was none, and this is a guess from other
  // sizes.
  MonotonicTime learnt;

  [[nodiscard]] bool guessed() const { return learnt == MonotonicTime{}; }
};

// What runs of one model version take, by the number of elements in their batch: running quantiles, so that of
// many runs a single one that was interrupted changes little, and steps that grow again after a pause, so that what was
// learnt long ago is soon forgotten. Thread-safe, without locks: of two observations at once one may be lost, and a
// prediction may be made of parts of both.
class LatencyModel {
 public:
  // Judged by runs of that size. Where there were none, by those of the next sizes below and above, taking a run to be
  // no shorter than a smaller one and no dearer for each element; nullopt when there were none at all.
  [[nodiscard]] std::optional<RunPrediction> Predict(std::int64_t elements) const;

  void Observe(std::int64_t elements, std::chrono::nanoseconds took, MonotonicTime now);

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

  std::array<Place, kPlaces> places_;
};

}  // namespace tandem
