#include "server/jobs/attempt_waits.h"

#include <algorithm>
#include <cstdint>

namespace tandem::jobs {

using std::chrono::milliseconds;

milliseconds BackOff(milliseconds first, milliseconds longest, std::int64_t failures_before) {
  constexpr std::int64_t kMostDoublings = 20;
  const std::int64_t doublings = std::clamp<std::int64_t>(failures_before, 0, kMostDoublings);
  return std::min(longest, first * (std::int64_t{1} << doublings));
}

MonotonicTime AttemptWaits::DueAt(const JobRecord& job) {
  if (!job.next_attempt_at) {
    due_.erase(job.id);
    return {};
  }
  const auto [found, is_new] = due_.try_emplace(job.id, clock_.Now());
  if (is_new) {
    const auto wall = std::chrono::duration_cast<milliseconds>(clock_.WallNow().time_since_epoch());
    found->second += std::clamp(milliseconds(*job.next_attempt_at) - wall, milliseconds(0), longest_);
  }
  return found->second;
}

}  // namespace tandem::jobs
