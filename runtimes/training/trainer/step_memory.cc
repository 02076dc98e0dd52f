#include "runtimes/training/trainer/step_memory.h"

#include <algorithm>

#include "runtimes/training/trainer/process_bytes.h"
#include "runtimes/training/trainer/training_heap.h"

namespace tandem::training {
namespace {

constexpr int kSteps = 2;

}  // namespace

void StepMemory::BeginStep() {
  if (steps_ < kSteps) ForgetTensorPeak();
}

std::optional<MemoryUse> StepMemory::EndStep(bool last) {
  if (steps_ >= kSteps) return std::nullopt;
  const auto tensors = CountTensorBytes();
  if (!tensors) return std::nullopt;
  peak_ = std::max(peak_, tensors->peak);
  if (++steps_ == 1) {
    live_ = tensors->live;
    // What is only kept for the next step does not count; that it is gone costs that one step a little.
    DropFreedMemory();
    persistent_ = AnonymousBytes();
  }
  if (steps_ < kSteps && !last) return std::nullopt;
  steps_ = kSteps;
  return MemoryUse{.persistent = persistent_, .ephemeral = peak_ > live_ ? peak_ - live_ : 0};
}

}  // namespace tandem::training
