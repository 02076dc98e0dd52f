#include "profiler/cpu_limits.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "api/base/errno_text.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using std::chrono::microseconds;
using std::chrono::nanoseconds;

constexpr double kMostMicroseconds = 1e12;  // As the files have them.

double FirstNumber(const fs::path& file) {
  std::ifstream in(file);
  double value = 0;
  return in >> value ? value : 0;
}

// A small file that is read over and over again, without opening it each time.
class KeptFile {
 public:
  [[nodiscard]] static Result<KeptFile> Open(const fs::path& file) {
    const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return Fail(ErrorCode::kNotFound, "'{}': {}", file.string(), ErrnoText());
    return KeptFile(fd);
  }
  KeptFile(KeptFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  KeptFile& operator=(KeptFile&&) = delete;
  ~KeptFile() {
    if (fd_ >= 0) ::close(fd_);
  }

  // The view lasts until the next call.
  [[nodiscard]] Result<std::string_view> Read() {
    const ssize_t got = ::pread(fd_, buffer_.data(), buffer_.size(), 0);
    if (got < 0) return Fail(ErrorCode::kUnavailable, "a control group cannot be read: {}", ErrnoText());
    return std::string_view(buffer_.data(), static_cast<std::size_t>(got));
  }

 private:
  explicit KeptFile(int fd) : fd_(fd) {}

  int fd_;
  std::array<char, 4096> buffer_{};
};

std::optional<std::uint64_t> Number(std::string_view text) {
  std::uint64_t value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end.ec != std::errc()) return std::nullopt;
  return value;
}

// The number after a name at the beginning of a line.
std::optional<std::uint64_t> Field(std::string_view text, std::string_view name) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    if (line.starts_with(name) && line.size() > name.size() && line[name.size()] == ' ') {
      return Number(line.substr(name.size() + 1));
    }
    begin = end + 1;
  }
  return std::nullopt;
}

Result<CpuUse> UseOf(std::string_view stat, std::optional<nanoseconds> used) {
  const auto periods = Field(stat, "nr_periods");
  const auto throttled = Field(stat, "nr_throttled");
  if (!used || !periods || !throttled) {
    return Fail(ErrorCode::kUnavailable, "the use of a control group's CPU time cannot be read");
  }
  return CpuUse{.used = *used, .periods = *periods, .throttled = *throttled};
}

class MeterV2 final : public CpuLimitMeter {
 public:
  MeterV2(ControlGroup group, KeptFile stat) : group_(std::move(group)), stat_(std::move(stat)) {}
  [[nodiscard]] std::string name() const override { return group_.folder.string(); }
  [[nodiscard]] Result<CpuLimit> Limit() override { return ReadCpuLimit(group_); }
  [[nodiscard]] Result<CpuUse> Use() override {
    TANDEM_ASSIGN(const std::string_view stat, stat_.Read());
    const auto used = Field(stat, "usage_usec");
    return UseOf(stat, used ? std::optional(nanoseconds(microseconds(*used))) : std::nullopt);
  }

 private:
  const ControlGroup group_;
  KeptFile stat_;
};

// The limit and the use are of two controllers, which may be mounted apart.
class MeterV1 final : public CpuLimitMeter {
 public:
  MeterV1(ControlGroup group, KeptFile stat, KeptFile usage)
      : group_(std::move(group)), stat_(std::move(stat)), usage_(std::move(usage)) {}
  [[nodiscard]] std::string name() const override { return group_.folder.string(); }
  [[nodiscard]] Result<CpuLimit> Limit() override { return ReadCpuLimit(group_); }
  [[nodiscard]] Result<CpuUse> Use() override {
    TANDEM_ASSIGN(const std::string_view usage, usage_.Read());
    const auto used = Number(usage);
    TANDEM_ASSIGN(const std::string_view stat, stat_.Read());
    return UseOf(stat, used ? std::optional(nanoseconds(*used)) : std::nullopt);
  }

 private:
  const ControlGroup group_;
  KeptFile stat_;
  KeptFile usage_;
};

Result<std::unique_ptr<CpuLimitMeter>> OpenMeter(const ControlGroup& group, const fs::path& root) {
  TANDEM_ASSIGN(auto stat, KeptFile::Open(group.folder / "cpu.stat"));
  if (group.version == CgroupVersion::kTwo) return std::make_unique<MeterV2>(group, std::move(stat));
  for (const ControlGroup& counted : ControlGroups("cpuacct", root)) {
    if (counted.version != CgroupVersion::kOne || counted.name != group.name) continue;
    TANDEM_ASSIGN(auto usage, KeptFile::Open(counted.folder / "cpuacct.usage"));
    return std::make_unique<MeterV1>(group, std::move(stat), std::move(usage));
  }
  return Fail(ErrorCode::kNotFound, "no group of the cpuacct controller counts the same processes as '{}'", group.name);
}

}  // namespace

Result<CpuLimit> ReadCpuLimit(const ControlGroup& group) {
  double quota = 0;
  double period = 0;
  if (group.version == CgroupVersion::kOne) {
    quota = FirstNumber(group.folder / "cpu.cfs_quota_us");
    period = FirstNumber(group.folder / "cpu.cfs_period_us");
  } else {
    std::ifstream in(group.folder / "cpu.max");
    if (!(in >> quota >> period)) quota = 0;
  }
  // "max", or less than nothing, stands for none.
  if (!(quota >= 1 && quota < kMostMicroseconds && period >= 1 && period < kMostMicroseconds)) {
    return Fail(ErrorCode::kNotFound, "'{}' has no CPU limit", group.folder.string());
  }
  return CpuLimit{.quota = microseconds(std::llround(quota)), .period = microseconds(std::llround(period))};
}

CpuLimitMeters OpenCpuLimits(const fs::path& root) {
  CpuLimitMeters all;
  std::set<fs::path> seen;  // A hierarchy may be there by two names.
  for (const ControlGroup& group : ControlGroups("cpu", root)) {
    std::error_code ec;
    const fs::path folder = fs::canonical(group.folder, ec);
    if (ec || !seen.insert(folder).second) continue;
    auto meter = OpenMeter(group, root);
    if (meter && (*meter)->Use()) {
      all.meters.push_back(*std::move(meter));
    } else if (ReadCpuLimit(group)) {
      all.unread.push_back(group.folder.string());
    }
  }
  return all;
}

}  // namespace tandem
