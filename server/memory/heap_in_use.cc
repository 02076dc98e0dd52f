#include "server/memory/heap_in_use.h"

#include <malloc.h>

namespace tandem {

std::optional<std::uint64_t> HeapInUse() {
#if defined(TANDEM_SANITIZED) || !defined(__GLIBC__)
  return std::nullopt;
#else
  const struct mallinfo2 heap = ::mallinfo2();
  return heap.uordblks + heap.hblkhd;
#endif
}

HeapGrowth::Look::Look(HeapGrowth& growth) : growth_(growth) {
  const MutexLock lock(growth_.mu_);
  number_ = ++growth_.begun_;
  if (growth_.under_way_++ > 0) growth_.met_ = number_;
  before_ = HeapInUse();
}

HeapGrowth::Look::~Look() {
  const MutexLock lock(growth_.mu_);
  --growth_.under_way_;
}

std::optional<std::uint64_t> HeapGrowth::Look::Taken() const {
  const MutexLock lock(growth_.mu_);
  const auto now = HeapInUse();
  if (number_ <= growth_.met_ || !before_ || !now || *now < *before_) return std::nullopt;
  return *now - *before_;
}

}  // namespace tandem
