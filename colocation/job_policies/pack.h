#pragma once

#include "colocation/job_policies/turns.h"

namespace tandem {

// A job in every lane at once, each until it ends: what one leaves of the device others use. The least time for all.
class Pack final : public JobPolicy {
 public:
  [[nodiscard]] std::string_view name() const override { return "pack"; }
  [[nodiscard]] std::vector<JobTurn> Decide(const JobSnapshot& snapshot) const override {
    return TakeTurnsBy(snapshot, Beside::kEverybody, &JobView::order);
  }
};

}  // namespace tandem
