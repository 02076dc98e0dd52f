#pragma once

#include <cstdint>

#include "api/base/mutex.h"

namespace tandem {

// What this process uses now, from /proc. Zeros where /proc cannot be read.
struct ProcessUsage {
  std::uint64_t resident_bytes = 0;
  std::uint64_t open_fds = 0;
  std::uint64_t threads = 0;
};

[[nodiscard]] ProcessUsage ReadProcessUsage();

// The machine's memory. Used is what no program could get without others giving way.
struct MemoryUsage {
  std::uint64_t total_bytes = 0;
  std::uint64_t used_bytes = 0;
};

[[nodiscard]] MemoryUsage ReadMemoryUsage();

// Time of all the machine's cores since it started, in clock ticks.
struct CpuTimes {
  std::uint64_t busy = 0;
  std::uint64_t total = 0;
};

[[nodiscard]] CpuTimes ReadCpuTimes();

// The busy share of the machine's CPU time. Thread-safe. Whoever asks soon after somebody else gets the same answer, so
// that two who ask in turn do not see slivers of time.
class CpuUtilization {
 public:
  // `least` is the CPU time, in ticks of all cores together, that an answer covers at least.
  CpuUtilization(CpuTimes start, std::uint64_t least) : least_(least), last_(start) {}
  // Of this machine, over at least a second.
  CpuUtilization();

  // 0 to 1, over the time since the last answer that was not a repetition.
  [[nodiscard]] double At(CpuTimes now) EXCLUDES(mu_);

 private:
  // Constant after construction.
  const std::uint64_t least_;

  Mutex mu_;
  CpuTimes last_ GUARDED_BY(mu_);
  double answer_ GUARDED_BY(mu_) = 0;
};

}  // namespace tandem
