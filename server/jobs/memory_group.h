#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "api/base/result.h"

namespace tandem::jobs {

// The control group that systemd has handed over to the server for this (Delegate= with DelegateSubgroup=): the one
// above its own. `membership` is the text of /proc/self/cgroup, `root` where version 2 is mounted. Nobody else's group
// is touched unasked: each has one owner, who may be surprised.
[[nodiscard]] std::optional<std::filesystem::path> DelegatedGroup(std::string_view membership,
                                                                  const std::filesystem::path& root);

// A control group of the kernel that bounds the memory of one trainer, whatever kind of memory it is. Made below a
// folder that the operator has set aside. Removed with the object, when what was in it has ended. One thread.
//
// Only memory: in a group of its own for the CPU a trainer would be the server's equal, and its idle class would be
// worth nothing. So a parent that shares out the CPU, too, is used only where the group itself can be made idle.
class MemoryGroup {
 public:
  // Whether groups can be made below `parent`; an error that says what is missing else, and kUnsupported when they can
  // be made but no process of ours be moved into them. Understands version 1 (a folder
  // of the memory controller) and 2 (a folder without processes, in which "memory" is enabled for its children, or can
  // be). `parent` is /sys/fs/cgroup/… or, in tests, anything that looks like it.
  [[nodiscard]] static Status Check(const std::filesystem::path& parent);
  // A group `name` of at most `bytes`, that a process of ours can be moved into: one has tried. One of that name that a
  // killed server left is used again.
  [[nodiscard]] static Result<std::unique_ptr<MemoryGroup>> Make(const std::filesystem::path& parent,
                                                                 const std::string& name, std::uint64_t bytes);
  ~MemoryGroup();
  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;

  // A process that writes "0" to it is in the group, with all that it starts.
  [[nodiscard]] int door() const { return door_; }
  // Whether the kernel has killed something in it for want of memory, since it was made.
  [[nodiscard]] bool HasKilled() const;

 private:
  MemoryGroup(std::filesystem::path folder, bool second_version, int door)
      : folder_(std::move(folder)), second_version_(second_version), door_(door) {}
  [[nodiscard]] std::uint64_t Kills() const;

  // Constant after Make.
  const std::filesystem::path folder_;
  const bool second_version_;
  const int door_;  // Owned.
  std::uint64_t kills_before_ = 0;
};

}  // namespace tandem::jobs
