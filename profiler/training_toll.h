#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "api/base/clock.h"

namespace tandem {

// What a run typically takes without training.
struct AloneTime {
  std::chrono::nanoseconds typical{0};  // 0: that is not known.
  bool sure = true;                     // Else it may be of another time: nobody has seen such runs for long.
};

// What training added to runs.
struct TollSum {
  std::chrono::nanoseconds added{0};     // All of it.
  std::chrono::nanoseconds doubtful{0};  // Of it, what was judged by times that are not sure.

  friend TollSum operator-(const TollSum& a, const TollSum& b) {
    return {.added = a.added - b.added, .doubtful = a.doubtful - b.doubtful};
  }
};

// Adds up by how much longer runs of requests take beside training than without it, so that of a late request it can be
// told whether training is to blame: what was added between its arrival and its answer is at most what training cost
// it. The arbiter tells it of trainers, who runs batches of runs, and who answers requests reads it. Thread-safe,
// without locks; a reader may miss a run that ends at that moment.
class TrainingToll {
 public:
  // What a trainer used may be missing for so long after it has stopped: a period of a CPU limit.
  static constexpr std::chrono::milliseconds kAftermath{100};
  // What it ordinarily takes until a thread that sleeps has begun a run.
  static constexpr std::chrono::microseconds kWaking{100};

  // Of those who run batches; whoever else runs one has no number among these.
  explicit TrainingToll(int workers = 1) : runs_(static_cast<std::size_t>(workers)) {}

  // A trainer that is there and neither paused nor held runs.
  void TrainerRuns() { trainers_.fetch_add(1, std::memory_order_relaxed); }
  void TrainerStops(MonotonicTime now);
  // Whether one ran at any time since then, or shortly before.
  [[nodiscard]] bool TrainedSince(MonotonicTime then) const;

  // A run begins for requests the first of which waits since `waited_since`; `alone` is what it takes without training.
  void RunBegan(std::size_t worker, MonotonicTime waited_since, MonotonicTime now, AloneTime alone);
  // Says whether it was beside training.
  bool RunEnded(std::size_t worker, MonotonicTime began, MonotonicTime now, AloneTime alone);

  // All that was added so far, with what the runs under way have taken too long already.
  [[nodiscard]] TollSum Added(MonotonicTime now) const;

 private:
  struct Run {
    std::atomic<std::int64_t> began{0};  // Since the clock's beginning; 0: none is under way.
    std::atomic<std::int64_t> alone{0};
    std::atomic<bool> sure{true};
    std::atomic<std::int64_t> ended{0};  // The one before.
  };

  void Add(std::chrono::nanoseconds time, bool sure) {
    (sure ? added_ : doubtful_).fetch_add(time.count(), std::memory_order_relaxed);
  }

  std::atomic<int> trainers_{0};
  std::atomic<std::int64_t> last_trained_{0};  // When one stopped; 0: never.
  std::atomic<std::int64_t> added_{0};         // Without the next.
  std::atomic<std::int64_t> doubtful_{0};
  std::vector<Run> runs_;  // Of each worker.
};

}  // namespace tandem
