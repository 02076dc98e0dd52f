#pragma once

#include <cstdint>

namespace tandem {

// What this process uses now, from /proc. Zeros where /proc cannot be read.
struct ProcessUsage {
  std::uint64_t resident_bytes = 0;
  std::uint64_t open_fds = 0;
  std::uint64_t threads = 0;
};

[[nodiscard]] ProcessUsage ReadProcessUsage();

// The machine's busy share of CPU time since the previous call, 0 to 1; 0 on the first. Thread-safe.
[[nodiscard]] double MachineCpuUtilization();

}  // namespace tandem
