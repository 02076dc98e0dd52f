#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>

#include "api/base/clock.h"
#include "profiler/latency_model.h"

namespace tandem {

// How many of its device's threads a run may use.
enum class RunWidth : std::uint8_t { kAll, kOne };

// Workers that choose between the two: there is one for each thread.
inline constexpr int kMostThreads = 64;

// Sets right what is known of runs of one width by what is known of the other, if that was learnt later: on one thread
// a run takes no less than on all of so many, and no more than twice as many times as long (it may have had less of the
// caches). Of two that were both learnt before the first request, neither is.
void BoundByOther(RunPrediction& run, RunWidth width, const RunPrediction& other, int threads);

// What the width of a run that could begin now may depend on.
struct WidthSnapshot {
  MonotonicTime now;
  // Of each worker, what it still has to do as far as that is expected; 0 of those that are free. A run on all threads
  // occupies all of them, so none is under way.
  std::span<const std::chrono::nanoseconds> rests;
  int running = 0;       // Of them, so many run something on one thread.
  bool overdue = false;  // One of these takes much longer than it was expected to.

  bool narrow_possible = true;          // The model can be run on one thread.
  std::optional<RunPrediction> wide;    // Of the run in question; nullopt: nothing is known of such runs.
  std::optional<RunPrediction> narrow;  // The same on one thread.
  std::chrono::nanoseconds left = std::chrono::nanoseconds::max();  // Until the earliest deadline in it.

  // Of all that waits, with the run in question: how many runs it makes, and what these take one after the other on all
  // threads, and in sum on one thread each.
  std::int64_t runs = 1;
  std::chrono::nanoseconds all_wide{0};
  std::chrono::nanoseconds all_narrow{0};
};

enum class WidthChoice : std::uint8_t {
  kAll,
  kOne,
  kWait,  // Until all threads are free, or one of the runs is overdue.
};

// What nobody has tried on one thread for so long is tried when several wait: else one slow run would decide for ever.
inline constexpr std::chrono::seconds kTryNarrowAfter{1};

// One after the other on all threads, the first of those that wait is answered long before the last; on a thread each
// they end together. So that is worth it only if all are done sooner by this part of the time.
inline constexpr int kSoonerBy = 10;

// Whether all threads compute one run after the other, or each thread one of its own: by what is done sooner with all
// that waits. A run that is only in time on all threads gets them. Pure: same snapshot, same choice.
[[nodiscard]] WidthChoice ChooseWidth(const WidthSnapshot& snapshot);

}  // namespace tandem
