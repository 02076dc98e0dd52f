#pragma once

#include "colocation/job_policies/turns.h"

namespace tandem {

// One job at a time, as they came, each until it ends: a device that is not shared. For comparison.
class FirstInFirstOut final : public JobPolicy {
 public:
  [[nodiscard]] std::string_view name() const override { return "fifo"; }
  [[nodiscard]] std::vector<JobTurn> Decide(const JobSnapshot& snapshot) const override {
    return TakeTurnsBy(snapshot, Beside::kNobody, &JobView::order);
  }
};

}  // namespace tandem
