#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

enum class CgroupVersion { kOne, kTwo };

// A folder of a control group that this process is in, or of an ancestor of it.
struct ControlGroup {
  CgroupVersion version = CgroupVersion::kTwo;
  std::filesystem::path folder;
  std::string name;  // As the hierarchy spells it, from its root: "/outer/inner".
};

// Every group that may bound this process by that controller ("cpu", "memory"), outermost first in each hierarchy.
// `root` stands for "/", for tests.
[[nodiscard]] std::vector<ControlGroup> ControlGroups(std::string_view controller,
                                                      const std::filesystem::path& root = "/");

}  // namespace tandem
