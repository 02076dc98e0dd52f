#include "profiler/run_times.h"

#include <algorithm>
#include <bit>

namespace tandem {
namespace {

std::size_t SizeClass(std::int64_t elements) {
  return static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(elements, 0))));
}

}  // namespace

std::chrono::nanoseconds RunTimes::Expected(std::int64_t elements) const {
  for (std::size_t i = SizeClass(elements) + 1; i-- > 0;) {
    if (const std::int64_t known = ns_[i].load(std::memory_order_relaxed); known > 0) {
      return std::chrono::nanoseconds(known);
    }
  }
  return std::chrono::nanoseconds(0);
}

void RunTimes::Observe(std::int64_t elements, std::chrono::nanoseconds took) {
  std::atomic<std::int64_t>& known = ns_[SizeClass(elements)];
  const std::int64_t before = known.load(std::memory_order_relaxed);
  const std::int64_t now = took.count();
  known.store(now >= before ? now : before - (before - now) / 8, std::memory_order_relaxed);
}

}  // namespace tandem
