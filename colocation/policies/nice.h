#pragma once

#include "colocation/policy.h"

namespace tandem {

// Trainers have the least weight that a thread can have, nice 19, and are never held. For comparison.
class NicePolicy final : public ColocationPolicy {
 public:
  [[nodiscard]] std::string_view name() const override { return "nice"; }
  [[nodiscard]] TrainerClass trainer_class() const override { return TrainerClass::kNice; }
};

}  // namespace tandem
