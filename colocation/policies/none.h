#pragma once

#include "colocation/policy.h"

namespace tandem {

// Trainers run as equals of the server: what happens when nobody manages anything. For comparison.
class NonePolicy final : public ColocationPolicy {
 public:
  [[nodiscard]] std::string_view name() const override { return "none"; }
  [[nodiscard]] TrainerClass trainer_class() const override { return TrainerClass::kNormal; }
};

}  // namespace tandem
