#pragma once

#include "colocation/job_policies/turns.h"

namespace tandem {

// The job that has had least memory goes first, counted as its bytes times the device's time: one with twice the memory
// gets half of the time.
class FairShareOfMemory final : public JobPolicy {
 public:
  [[nodiscard]] std::string_view name() const override { return "fair_memory"; }
  [[nodiscard]] std::vector<JobTurn> Decide(const JobSnapshot& snapshot) const override {
    return TakeTurnsBy(snapshot, Beside::kWhoFits, [](const JobView& job) { return job.had.byte_time; });
  }
};

}  // namespace tandem
