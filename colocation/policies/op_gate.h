#pragma once

#include "colocation/policy.h"

namespace tandem {

// As Herald was published: heavy operators of training and requests take turns, requests first; light operators run
// beside them. Nothing that has begun is interrupted. For comparison.
class OpGatePolicy final : public ColocationPolicy {
 public:
  [[nodiscard]] std::string_view name() const override { return "op_gate"; }
  [[nodiscard]] TrainerClass trainer_class() const override { return TrainerClass::kNormal; }
  [[nodiscard]] bool heeds_requests() const override { return true; }
  [[nodiscard]] GatedOps gated_ops() const override { return GatedOps::kHeavy; }
  [[nodiscard]] ColocationDecision Decide(const ColocationSnapshot& snapshot) const override {
    if (snapshot.pending > 0) return {.hold_heavy = HoldReason::kRequests};
    return {};
  }
};

}  // namespace tandem
