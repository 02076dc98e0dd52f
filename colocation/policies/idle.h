#pragma once

#include "colocation/policy.h"

namespace tandem {

// Trainers are of the kernel's idle class and are never held: the best of what can be had without a server that knows
// of both. For comparison.
class IdlePolicy final : public ColocationPolicy {
 public:
  [[nodiscard]] std::string_view name() const override { return "idle"; }
  [[nodiscard]] TrainerClass trainer_class() const override { return TrainerClass::kIdle; }
};

}  // namespace tandem
