#include "profiler/training_toll.h"

#include <algorithm>

namespace tandem {
namespace {

using std::chrono::nanoseconds;

std::int64_t Number(MonotonicTime time) {
  return time.time_since_epoch().count();
}

MonotonicTime At(std::int64_t time) {
  return MonotonicTime(nanoseconds(time));
}

nanoseconds Excess(nanoseconds took, nanoseconds alone) {
  return alone.count() <= 0 ? nanoseconds(0) : std::max(nanoseconds(0), took - alone);
}

}  // namespace

void TrainingToll::TrainerStops(MonotonicTime now) {
  last_trained_.store(Number(now), std::memory_order_relaxed);
  // After the time, so that nobody sees neither.
  trainers_.fetch_sub(1, std::memory_order_release);
}

bool TrainingToll::TrainedSince(MonotonicTime then) const {
  if (trainers_.load(std::memory_order_acquire) > 0) return true;
  const std::int64_t last = last_trained_.load(std::memory_order_relaxed);
  return last != 0 && At(last) + kAftermath >= then;
}

void TrainingToll::RunBegan(std::size_t worker, MonotonicTime waited_since, MonotonicTime now, AloneTime alone) {
  if (worker >= runs_.size()) return;
  Run& run = runs_[worker];
  const MonotonicTime free = std::max(waited_since, At(run.ended.load(std::memory_order_relaxed)));
  if (TrainedSince(free)) Add(Excess(now - free, kWaking), true);
  run.alone.store(alone.typical.count(), std::memory_order_relaxed);
  run.sure.store(alone.sure, std::memory_order_relaxed);
  run.began.store(Number(now), std::memory_order_release);
}

bool TrainingToll::RunEnded(std::size_t worker, MonotonicTime began, MonotonicTime now, AloneTime alone) {
  if (worker < runs_.size()) {
    runs_[worker].ended.store(Number(now), std::memory_order_relaxed);
    runs_[worker].began.store(0, std::memory_order_relaxed);
  }
  const bool beside = TrainedSince(began);
  if (beside) Add(Excess(now - began, alone.typical), alone.sure);
  return beside;
}

TollSum TrainingToll::Added(MonotonicTime now) const {
  TollSum sum{.added = nanoseconds(added_.load(std::memory_order_relaxed)),
              .doubtful = nanoseconds(doubtful_.load(std::memory_order_relaxed))};
  sum.added += sum.doubtful;
  for (const Run& run : runs_) {
    const std::int64_t began = run.began.load(std::memory_order_acquire);
    if (began == 0 || !TrainedSince(At(began))) continue;
    const nanoseconds excess = Excess(now - At(began), nanoseconds(run.alone.load(std::memory_order_relaxed)));
    sum.added += excess;
    if (!run.sure.load(std::memory_order_relaxed)) sum.doubtful += excess;
  }
  return sum;
}

}  // namespace tandem
