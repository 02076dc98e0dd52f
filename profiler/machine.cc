#include "profiler/machine.h"

#include <algorithm>
#include <cmath>
#include <fstream>

#include "api/base/format.h"
#include "profiler/control_groups.h"
#include "profiler/cpu_limits.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

template <typename T>
std::optional<T> ReadNumber(const fs::path& file) {
  std::ifstream in(file);
  T value{};
  if (in >> value) return value;
  return std::nullopt;
}

}  // namespace

std::optional<CpuQuota> ReadCpuQuota(const fs::path& root) {
  std::optional<double> cores;
  for (const ControlGroup& group : ControlGroups("cpu", root)) {
    if (const auto limit = ReadCpuLimit(group)) cores = std::min(cores.value_or(limit->cores()), limit->cores());
  }
  if (!cores) return std::nullopt;
  return CpuQuota{*cores};
}

std::optional<std::uint64_t> ReadMemoryLimit(const fs::path& root) {
  // cgroup v1 spells "no limit" as a number near 2^63.
  constexpr std::uint64_t kUnlimited = std::uint64_t{1} << 60;
  std::optional<std::uint64_t> limit;
  for (const ControlGroup& group : ControlGroups("memory", root)) {
    const char* const file = group.version == CgroupVersion::kTwo ? "memory.max" : "memory.limit_in_bytes";
    const auto value = ReadNumber<std::uint64_t>(group.folder / file);
    if (value && *value < kUnlimited) limit = std::min(limit.value_or(*value), *value);
  }
  return limit;
}

std::vector<int> AllowedCoreNumbers(int process) {
  std::vector<int> cores;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(process, sizeof(set), &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

std::string CoreNumbersText(std::span<const int> cores) {
  std::string text;
  for (std::size_t i = 0; i < cores.size();) {
    std::size_t last = i;
    while (last + 1 < cores.size() && cores[last + 1] == cores[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(cores[i]);
    if (last > i) text += Format("-{}", cores[last]);
    i = last + 1;
  }
  return text;
}

int AllowedCores() {
  return std::max(static_cast<int>(AllowedCoreNumbers().size()), 1);
}

cpu_set_t CoreSet(std::span<const int> cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  return set;
}

int UsableCores() {
  int cores = AllowedCores();
  if (const auto quota = ReadCpuQuota()) cores = std::min(cores, static_cast<int>(std::ceil(quota->cores)));
  return std::max(cores, 1);
}

std::string CpuModel(const fs::path& root) {
  constexpr std::size_t kLongest = 128;
  constexpr int kLines = 200;
  std::ifstream in(root / "proc/cpuinfo");
  std::string line;
  for (int i = 0; i < kLines && std::getline(in, line); ++i) {
    if (!line.starts_with("model name")) continue;
    const std::size_t value = line.find_first_not_of(" \t", line.find(':') + 1);
    if (line.find(':') == std::string::npos || value == std::string::npos) continue;
    std::string model = line.substr(value, kLongest);
    std::ranges::replace_if(model, [](unsigned char c) { return c < ' ' || c > '~'; }, '?');
    return model;
  }
  return "unknown";
}

}  // namespace tandem
