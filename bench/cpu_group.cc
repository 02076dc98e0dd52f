#include "bench/cpu_group.h"

#include <chrono>
#include <cmath>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include <unistd.h>

#include "api/base/format.h"
#include "profiler/control_groups.h"

namespace tandem::bench {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr int kPeriodUs = 100'000;
constexpr int kTriesToRemove = 500;

// The innermost group of this process that this controller has.
std::optional<ControlGroup> OwnGroup(std::string_view controller, CgroupVersion version) {
  std::optional<ControlGroup> own;
  for (const ControlGroup& group : ControlGroups(controller)) {
    if (group.version == version && fs::exists(group.folder / "cgroup.procs")) own = group;
  }
  return own;
}

Status WriteTo(const fs::path& file, const std::string& text) {
  std::ofstream out(file);
  out << text << std::flush;
  if (out) return {};
  return Fail(ErrorCode::kUnavailable, "'{}' cannot be written", file.string());
}

}  // namespace

Result<std::unique_ptr<CpuGroup>> CpuGroup::Make(double cores) {
  static int made = 0;
  const std::string name = Format("tandem-bench-{}-{}", ::getpid(), made++);
  const int quota = static_cast<int>(std::lround(cores * kPeriodUs));
  std::unique_ptr<CpuGroup> group(new CpuGroup());
  const auto enter = [&](const ControlGroup& own) -> Status {
    std::error_code ec;
    if (fs::create_directory(own.folder / name, ec)) group->folders_.push_back(own.folder / name);
    if (ec) return Fail(ErrorCode::kUnavailable, "no group in '{}': {}", own.folder.string(), ec.message());
    return {};
  };
  if (const auto cpu = OwnGroup("cpu", CgroupVersion::kOne)) {
    TANDEM_TRY(enter(*cpu));
    TANDEM_TRY(WriteTo(cpu->folder / name / "cpu.cfs_period_us", std::to_string(kPeriodUs)));
    TANDEM_TRY(WriteTo(cpu->folder / name / "cpu.cfs_quota_us", std::to_string(quota)));
    if (const auto use = OwnGroup("cpuacct", CgroupVersion::kOne)) TANDEM_TRY(enter(*use));
    return group;
  }
  if (const auto both = OwnGroup("cpu", CgroupVersion::kTwo)) {
    TANDEM_TRY(enter(*both));
    TANDEM_TRY(WriteTo(both->folder / name / "cpu.max", Format("{} {}", quota, kPeriodUs)));
    return group;
  }
  return Fail(ErrorCode::kUnavailable, "there are no control groups for CPU time here");
}

CpuGroup::~CpuGroup() {
  for (const fs::path& folder : folders_) {
    // What has just been killed leaves a little later.
    for (int i = 0; i < kTriesToRemove && ::rmdir(folder.c_str()) != 0; ++i) std::this_thread::sleep_for(10ms);
  }
}

std::vector<fs::path> CpuGroup::doors() const {
  std::vector<fs::path> doors;
  for (const fs::path& folder : folders_) doors.push_back(folder / "cgroup.procs");
  return doors;
}

}  // namespace tandem::bench
