#pragma once

#include "colocation/job_policies/turns.h"

namespace tandem {

// The job that has had least of the device's time goes first: while the same jobs are there, all get the same but for
// an iteration.
class FairShareOfTime final : public JobPolicy {
 public:
  [[nodiscard]] std::string_view name() const override { return "fair"; }
  [[nodiscard]] std::vector<JobTurn> Decide(const JobSnapshot& snapshot) const override {
    return TakeTurnsBy(snapshot, Beside::kWhoFits, [](const JobView& job) { return job.had.time; });
  }
};

}  // namespace tandem
