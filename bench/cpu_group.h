#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "api/base/result.h"

namespace tandem::bench {

// A control group below this process's own whose CPU time is limited, of either version of control groups. Removed with
// the object, after what is in it has ended. Used by one thread.
class CpuGroup {
 public:
  // kUnavailable where no such group can be made.
  [[nodiscard]] static Result<std::unique_ptr<CpuGroup>> Make(double cores);
  ~CpuGroup();
  CpuGroup(const CpuGroup&) = delete;
  CpuGroup& operator=(const CpuGroup&) = delete;

  // Files to write a process's number into, which then is in the group with all that it starts.
  [[nodiscard]] std::vector<std::filesystem::path> doors() const;

 private:
  CpuGroup() = default;
  std::vector<std::filesystem::path> folders_;  // One for each controller that is mounted apart.
};

}  // namespace tandem::bench
