#pragma once

#include <chrono>
#include <map>

#include "api/base/clock.h"
#include "server/jobs/job_record.h"

namespace tandem::jobs {

// How long after its failure a job is tried again: doubles with each that went before, up to the longest.
[[nodiscard]] std::chrono::milliseconds BackOff(std::chrono::milliseconds first, std::chrono::milliseconds longest,
                                                std::int64_t failures_before);

// When jobs that wait for their next attempt may be tried. Counts on the monotonic clock: the time of day, which is in
// their records, may be set forward and back. One thread.
class AttemptWaits {
 public:
  // `longest` bounds what a job waits that another server has left.
  AttemptWaits(const Clock& clock, std::chrono::milliseconds longest) : clock_(clock), longest_(longest) {}

  void Begin(JobId id, std::chrono::milliseconds wait) { due_[id] = clock_.Now() + wait; }
  void Forget(JobId id) { due_.erase(id); }
  // Of a job that is queued; the beginning of time for one that waits for nothing.
  [[nodiscard]] MonotonicTime DueAt(const JobRecord& job);

 private:
  // Constant after construction.
  const Clock& clock_;
  const std::chrono::milliseconds longest_;

  std::map<JobId, MonotonicTime> due_;
};

}  // namespace tandem::jobs
