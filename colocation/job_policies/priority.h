#pragma once

#include "colocation/job_policies/turns.h"

namespace tandem {

// The job with the largest priority goes first, and takes the device from others at the next boundary; of equals the
// one that came first, until it ends.
class PriorityFirst final : public JobPolicy {
 public:
  [[nodiscard]] std::string_view name() const override { return "priority"; }
  [[nodiscard]] std::int64_t QueueRank(const JobView& job) const override { return -std::int64_t{job.priority}; }
  [[nodiscard]] std::vector<JobTurn> Decide(const JobSnapshot& snapshot) const override {
    return TakeTurnsBy(snapshot, Beside::kWhoFits, [this](const JobView& job) { return QueueRank(job); });
  }
};

}  // namespace tandem
