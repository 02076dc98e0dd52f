#include "runtimes/training/trainer/training_heap.h"

#include <limits>

#include <malloc.h>

namespace tandem::training {

void KeepFreedMemory() {
  // No mappings of their own, which go with their tensor, and nothing is given back at the top. What this is no hint
  // for (another malloc) works as before.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
}

}  // namespace tandem::training
