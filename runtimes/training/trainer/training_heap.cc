#include "runtimes/training/trainer/training_heap.h"

#include <limits>

#include <malloc.h>

namespace tandem::training {

void KeepFreedMemory() {
  // Larger tensors are mapped, and go with their pages: the hole that one leaves fits few others.
  constexpr int kLargestKept = 16 << 20;
  // Nothing is given back at the top. Where malloc knows neither it works as before.
  mallopt(M_MMAP_THRESHOLD, kLargestKept);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
}

}  // namespace tandem::training
