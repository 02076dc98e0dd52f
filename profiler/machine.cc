#include "profiler/machine.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include <sched.h>

namespace tandem {
namespace {

namespace fs = std::filesystem;

// One line of /proc/self/cgroup: "4:memory:/path" (v1) or "0::/path" (v2).
struct Membership {
  std::string controllers;
  std::string path;
};

std::vector<Membership> ReadMemberships(const fs::path& root) {
  std::ifstream file(root / "proc/self/cgroup");
  std::vector<Membership> all;
  for (std::string line; std::getline(file, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    all.push_back({line.substr(first + 1, second - first - 1), line.substr(second + 1)});
  }
  return all;
}

bool HasController(const Membership& m, std::string_view name) {
  std::istringstream list(m.controllers);
  for (std::string item; std::getline(list, item, ',');) {
    if (item == name) return true;
  }
  return false;
}

// The folders of a group and its ancestors below the mount of its hierarchy. A container often sees its own group as
// the mount's root although /proc names the path outside: the mount itself is always among them.
std::vector<fs::path> GroupFolders(const fs::path& mount, const std::string& path) {
  std::vector<fs::path> folders = {mount};
  fs::path folder = mount;
  for (const fs::path& part : fs::path(path).relative_path()) {
    folder /= part;
    std::error_code ec;
    if (!fs::is_directory(folder, ec)) break;
    folders.push_back(folder);
  }
  return folders;
}

// Calls v2(folder) or v1(folder) for every group that may limit this process.
void ForEachGroup(const fs::path& root, std::string_view controller, const std::function<void(const fs::path&)>& v1,
                  const std::function<void(const fs::path&)>& v2) {
  const fs::path base = root / "sys/fs/cgroup";
  for (const Membership& m : ReadMemberships(root)) {
    if (m.controllers.empty()) {
      for (const fs::path& folder : GroupFolders(base, m.path)) v2(folder);
      for (const fs::path& folder : GroupFolders(base / "unified", m.path)) v2(folder);
    } else if (HasController(m, controller)) {
      for (const fs::path& folder : GroupFolders(base / m.controllers, m.path)) v1(folder);
      if (m.controllers != controller) {
        for (const fs::path& folder : GroupFolders(base / controller, m.path)) v1(folder);
      }
    }
  }
}

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
  const auto consider = [&](double quota, double period) {
    if (quota <= 0 || period <= 0) return;
    cores = std::min(cores.value_or(quota / period), quota / period);
  };
  ForEachGroup(
      root, "cpu",
      [&](const fs::path& group) {
        consider(ReadNumber<double>(group / "cpu.cfs_quota_us").value_or(-1),
                 ReadNumber<double>(group / "cpu.cfs_period_us").value_or(0));
      },
      [&](const fs::path& group) {
        std::ifstream in(group / "cpu.max");
        double quota = 0;
        double period = 0;
        if (in >> quota >> period) consider(quota, period);
      });
  if (!cores) return std::nullopt;
  return CpuQuota{*cores};
}

std::optional<std::uint64_t> ReadMemoryLimit(const fs::path& root) {
  // cgroup v1 spells "no limit" as a number near 2^63.
  constexpr std::uint64_t kUnlimited = std::uint64_t{1} << 60;
  std::optional<std::uint64_t> limit;
  const auto consider = [&](std::optional<std::uint64_t> value) {
    if (value && *value < kUnlimited) limit = std::min(limit.value_or(*value), *value);
  };
  ForEachGroup(
      root, "memory",
      [&](const fs::path& group) { consider(ReadNumber<std::uint64_t>(group / "memory.limit_in_bytes")); },
      [&](const fs::path& group) { consider(ReadNumber<std::uint64_t>(group / "memory.max")); });
  return limit;
}

int UsableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int cores = ::sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
  if (const auto quota = ReadCpuQuota()) cores = std::min(cores, static_cast<int>(std::ceil(quota->cores)));
  return std::max(cores, 1);
}

}  // namespace tandem
