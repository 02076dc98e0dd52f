#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/base/result.h"
#include "profiler/control_groups.h"

namespace tandem {

// So much CPU time, over all cores, in every period; when it is used up, every thread of the group stands still until
// the next one begins. What is left at the end of a period is lost.
struct CpuLimit {
  std::chrono::nanoseconds quota{0};
  std::chrono::nanoseconds period{0};

  [[nodiscard]] double cores() const {
    return static_cast<double>(quota.count()) / static_cast<double>(period.count());
  }
  friend bool operator==(const CpuLimit&, const CpuLimit&) = default;
};

// What a group has come to since it was made.
struct CpuUse {
  std::chrono::nanoseconds used{0};
  std::uint64_t periods = 0;    // That were begun while the group had something to run.
  std::uint64_t throttled = 0;  // Of them, those in which its time was used up.
};

// A control group whose CPU time is limited, or can be. Used by one thread.
class CpuLimitMeter {
 public:
  virtual ~CpuLimitMeter() = default;
  // For people.
  [[nodiscard]] virtual std::string name() const = 0;
  // As it stands now, nullopt when there is none: it can be changed, or lifted, while we run. Takes no memory.
  [[nodiscard]] virtual std::optional<CpuLimit> Limit() = 0;
  [[nodiscard]] virtual Result<CpuUse> Use() = 0;
  // Its time alone, which may be less to read.
  [[nodiscard]] virtual Result<std::chrono::nanoseconds> Used() {
    TANDEM_ASSIGN(const CpuUse use, Use());
    return use.used;
  }
};

// The groups that bound this process's CPU time, or may come to: by cfs_quota (version 1 of control groups) or cpu.max
// (version 2). Those whose use cannot be read have no meter; of them, `unread` names those that have a limit.
struct CpuLimitMeters {
  std::vector<std::unique_ptr<CpuLimitMeter>> meters;
  std::vector<std::string> unread;
};
[[nodiscard]] CpuLimitMeters OpenCpuLimits(const std::filesystem::path& root = "/");

// The limit of one group, if it has one.
[[nodiscard]] std::optional<CpuLimit> ReadCpuLimit(const ControlGroup& group);

}  // namespace tandem
