#pragma once

#include <chrono>
#include <span>
#include <vector>

#include "api/base/clock.h"
#include "server/trace/batch_runs.h"

namespace tandem::trace {

// A run of others on a worker while a request waited.
struct OtherRun {
  BatchRun run;
  std::chrono::nanoseconds blocked{0};  // For so long of the wait it was in the way, with those beside it.
};

// How a request stood in the queue. What ran on threads of front ends held no worker and is left out.
struct Waiting {
  MonotonicTime from;
  MonotonicTime to;
  int workers = 1;
  std::vector<OtherRun> others;         // In the order of their beginnings.
  std::chrono::nanoseconds blocked{0};  // For so long it could not be run: no worker was free, or not all that it got.
  bool wants_all = false;               // It was run on all threads, and so alone.
  bool unknown = false;                 // What a worker did is overwritten: it may have been at it all the time.

  [[nodiscard]] std::chrono::nanoseconds length() const { return to - from; }
};

// `overwritten`: there were runs that are not in `runs`.
[[nodiscard]] Waiting WaitBetween(MonotonicTime from, MonotonicTime to, const BatchRuns& runs,
                                  std::span<const BatchRun> own, int workers, bool overwritten);

}  // namespace tandem::trace
