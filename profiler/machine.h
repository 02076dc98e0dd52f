#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sched.h>

namespace tandem {

// A CPU bandwidth limit of a control group.
struct CpuQuota {
  double cores = 0;  // quota ÷ period
};

// The tightest CPU limit over this process's control group and its ancestors (cgroup v1 cfs_quota, v2 cpu.max);
// nullopt when there is none. `root` stands for "/", for tests.
[[nodiscard]] std::optional<CpuQuota> ReadCpuQuota(const std::filesystem::path& root = "/");

// The tightest memory limit in bytes, likewise.
[[nodiscard]] std::optional<std::uint64_t> ReadMemoryLimit(const std::filesystem::path& root = "/");

// The numbers of the cores that this thread, or the main one of another process, may run on, whatever its quota; empty
// when they cannot be told.
[[nodiscard]] std::vector<int> AllowedCoreNumbers(int process = 0);
// "0-3,8"
[[nodiscard]] std::string CoreNumbersText(std::span<const int> cores);
// How many there are. At least 1.
[[nodiscard]] int AllowedCores();
// Cores as the kernel takes them. The numbers are as AllowedCoreNumbers() has them.
[[nodiscard]] cpu_set_t CoreSet(std::span<const int> cores);

// How many threads can run at once: the cores that this process may use, bounded by its CPU quota. At least 1.
[[nodiscard]] int UsableCores();

// What the CPUs call themselves, without control characters; "unknown" when they do not.
[[nodiscard]] std::string CpuModel(const std::filesystem::path& root = "/");

}  // namespace tandem
