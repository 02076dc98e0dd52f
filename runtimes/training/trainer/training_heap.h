#pragma once

#include <cstdint>
#include <optional>

namespace tandem::training {

// Keeps what tensors give back, for the next ones, in memory of their own with huge pages where the system has them. A
// step allocates what the last one did, and the system takes longer to hand out zeroed pages than many an operator to
// fill them. Once, before the first tensor and before there are threads; holds for the whole process.
void KeepFreedMemory();

// Bytes of ATen's tensors, and of what its libraries take as if it were tensors.
struct TensorBytes {
  std::uint64_t live = 0;  // Now.
  std::uint64_t peak = 0;  // The most at once since the last ForgetTensorPeak().
};

// Counted since KeepFreedMemory(); nullopt where tensors have no memory of their own: with a sanitizer, or before that.
// Any thread.
[[nodiscard]] std::optional<TensorBytes> CountTensorBytes();
void ForgetTensorPeak();

// Gives back what is free, of tensors and of all else, until somebody needs it again. For when what follows is of
// another kind: after a model has been read, whose file was in memory as often as it took to make tensors of it, and
// before one is written.
void DropFreedMemory();

}  // namespace tandem::training
