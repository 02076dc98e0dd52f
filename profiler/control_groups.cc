#include "profiler/control_groups.h"

#include <fstream>
#include <sstream>
#include <utility>

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

// Adds the folders of a group and its ancestors below the mount of its hierarchy. A container often sees its own group
// as the mount's root although /proc names the path outside: the mount itself is always among them.
void AddFolders(std::vector<ControlGroup>& all, CgroupVersion version, const fs::path& mount, const std::string& path) {
  fs::path below = "/";
  all.push_back({.version = version, .folder = mount, .name = below.string()});
  for (const fs::path& part : fs::path(path).relative_path()) {
    below /= part;
    fs::path folder = mount / below.relative_path();
    std::error_code ec;
    if (!fs::is_directory(folder, ec)) break;
    all.push_back({.version = version, .folder = std::move(folder), .name = below.string()});
  }
}

}  // namespace

std::vector<ControlGroup> ControlGroups(std::string_view controller, const fs::path& root) {
  const fs::path base = root / "sys/fs/cgroup";
  std::vector<ControlGroup> all;
  for (const Membership& m : ReadMemberships(root)) {
    if (m.controllers.empty()) {
      AddFolders(all, CgroupVersion::kTwo, base, m.path);
      AddFolders(all, CgroupVersion::kTwo, base / "unified", m.path);
    } else if (HasController(m, controller)) {
      AddFolders(all, CgroupVersion::kOne, base / m.controllers, m.path);
      if (m.controllers != controller) AddFolders(all, CgroupVersion::kOne, base / controller, m.path);
    }
  }
  return all;
}

}  // namespace tandem
