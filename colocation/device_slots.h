#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include "api/base/clock.h"
#include "colocation/run_width.h"

namespace tandem {

// The workers of one device, and until when each is expected to run something. When runs have widths there is a worker
// for each thread, and a run on all threads is under way alone. Not thread-safe: the dispatcher guards it.
class DeviceSlots {
 public:
  // With `widths`, at most kMostThreads workers.
  DeviceSlots(int workers, bool widths) : widths_(widths), spans_(static_cast<std::size_t>(workers)) {}

  [[nodiscard]] int workers() const { return static_cast<int>(spans_.size()); }
  // Runs have a width to choose.
  [[nodiscard]] bool widths() const { return widths_; }
  [[nodiscard]] int running() const { return running_; }
  // Threads of the device that runs have; more than it has, when one has all or all share them.
  static constexpr int kAllThreads = 0xffff;
  [[nodiscard]] int taken() const { return running_ > 0 && (exclusive_ || !widths_) ? kAllThreads : running_; }
  // No run may begin.
  [[nodiscard]] bool full() const { return running_ == workers() || exclusive_; }

  // Returns the seat of the run's first thread (colocation/core_seats.h). The others of a run on all threads have those
  // after the first one, which is therefore its own. A run on one thread has the one that its worker had last, if that
  // is free: to move costs more than to stay.
  std::size_t Begin(std::size_t worker, RunWidth width, MonotonicTime begins, MonotonicTime ends);
  void End(std::size_t worker, MonotonicTime now);

  // What each still has to do, in place of what `rests` held: 0 of those that are free; all the same when one run has
  // all threads.
  void Rests(MonotonicTime now, std::vector<std::chrono::nanoseconds>& rests) const;
  // Since when what waits could have begun, at the latest, but for its own worker: the end of the last run when runs
  // have widths, as it may have waited for that.
  [[nodiscard]] MonotonicTime free_since() const { return free_since_; }
  // When the first of the runs will have taken a quarter longer than expected; max when none is under way.
  [[nodiscard]] MonotonicTime OverdueAt() const;

 private:
  struct Span {
    MonotonicTime begins = MonotonicTime::min();  // Min: it runs nothing.
    MonotonicTime ends = MonotonicTime::min();
    std::size_t seat = 0;  // Of the last run, when it runs nothing.
  };

  [[nodiscard]] bool Sits(std::size_t seat) const;

  const bool widths_;
  std::vector<Span> spans_;
  int running_ = 0;
  bool exclusive_ = false;  // What is under way has all threads.
  MonotonicTime free_since_ = MonotonicTime::min();
};

}  // namespace tandem
