#pragma once

#include "colocation/policy.h"

namespace tandem {

// Trainers stand still while any request is under way. For comparison.
class PausePolicy final : public ColocationPolicy {
 public:
  [[nodiscard]] std::string_view name() const override { return "pause"; }
  [[nodiscard]] TrainerClass trainer_class() const override { return TrainerClass::kNormal; }
  [[nodiscard]] bool heeds_requests() const override { return true; }
  [[nodiscard]] ColocationDecision Decide(const ColocationSnapshot& snapshot) const override {
    if (snapshot.pending > 0) return {.hold = HoldReason::kRequests};
    return {};
  }
};

}  // namespace tandem
