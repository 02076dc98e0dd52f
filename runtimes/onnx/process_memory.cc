#include "runtimes/onnx/process_memory.h"

#include <algorithm>

#include <sys/resource.h>
#include <unistd.h>

#include "profiler/machine.h"

namespace tandem {
namespace {

#if defined(TANDEM_SANITIZED)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

constexpr std::uint64_t kLeastBounded = std::uint64_t{1} << 30;

}  // namespace

std::uint64_t UsableMemory() {
  const auto physical =
      static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return std::min(physical, ReadMemoryLimit().value_or(physical));
}

std::uint64_t ProcessMemoryBound() {
  const std::uint64_t bound = UsableMemory() / 10 * 9;
  rlimit limit{};
  return getrlimit(RLIMIT_DATA, &limit) == 0 ? std::min<std::uint64_t>(bound, limit.rlim_cur) : bound;
}

void BoundProcessMemory() {
  rlimit limit{};
  if (kSanitized || getrlimit(RLIMIT_DATA, &limit) != 0 || UsableMemory() < kLeastBounded) return;
  limit.rlim_cur = ProcessMemoryBound();
  setrlimit(RLIMIT_DATA, &limit);
}

}  // namespace tandem
