#pragma once

#include "colocation/job_policies/turns.h"

namespace tandem {

// The job that has the least time left goes first, and takes the device from a longer one at the next boundary: the
// least mean time until jobs are done. One of which nothing is known yet goes before all: an iteration tells.
class ShortestRemainingTime final : public JobPolicy {
 public:
  [[nodiscard]] std::string_view name() const override { return "srtf"; }
  [[nodiscard]] std::int64_t QueueRank(const JobView& job) const override {
    return job.remaining.value_or(std::chrono::nanoseconds::min()).count();
  }
  [[nodiscard]] std::vector<JobTurn> Decide(const JobSnapshot& snapshot) const override {
    return TakeTurnsBy(snapshot, Beside::kWhoFits, [this](const JobView& job) { return QueueRank(job); });
  }
};

}  // namespace tandem
