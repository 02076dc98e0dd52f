#pragma once

#include "colocation/policy.h"

namespace tandem {

// Half of the cores for requests, the others for trainers; neither uses what the other leaves. With one core both have
// that. For comparison.
class PartitionPolicy final : public ColocationPolicy {
 public:
  [[nodiscard]] std::string_view name() const override { return "partition"; }
  [[nodiscard]] TrainerClass trainer_class() const override { return TrainerClass::kNormal; }
  [[nodiscard]] std::optional<int> ServingCores(int cores) const override {
    if (cores < 2) return std::nullopt;
    return (cores + 1) / 2;
  }
};

}  // namespace tandem
