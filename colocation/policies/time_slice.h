#pragma once

#include "colocation/policy.h"

namespace tandem {

// While any request is under way time is cut into equal slices, and trainers stand still in every other one. For
// comparison.
class TimeSlicePolicy final : public ColocationPolicy {
 public:
  static constexpr std::chrono::milliseconds kSlice{10};

  [[nodiscard]] std::string_view name() const override { return "time_slice"; }
  [[nodiscard]] TrainerClass trainer_class() const override { return TrainerClass::kNormal; }
  [[nodiscard]] bool heeds_requests() const override { return true; }
  [[nodiscard]] ColocationDecision Decide(const ColocationSnapshot& snapshot) const override {
    if (snapshot.pending == 0) return {};
    ColocationDecision decision{.look_again = kSlice - snapshot.now % kSlice};
    if (snapshot.now / kSlice % 2 == 1) decision.hold = HoldReason::kRequests;
    return decision;
  }
};

}  // namespace tandem
