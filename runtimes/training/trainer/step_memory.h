#pragma once

#include <cstdint>
#include <optional>

#include "api/base/training_memory.h"

namespace tandem::training {

// What a run takes of memory, measured in its first two steps: in the first the optimizer makes its state, so what
// stays after it is persistent, and what there was beyond that in either of them is ephemeral. Training thread only.
class StepMemory {
 public:
  void BeginStep();
  // What is known, once: after the second step, or after the first if it is the last; nullopt where it cannot be told.
  [[nodiscard]] std::optional<MemoryUse> EndStep(bool last);

 private:
  int steps_ = 0;  // Done, up to those that count.
  std::uint64_t peak_ = 0;
  std::uint64_t live_ = 0;  // Of tensors, after the first step.
  std::uint64_t persistent_ = 0;
};

}  // namespace tandem::training
