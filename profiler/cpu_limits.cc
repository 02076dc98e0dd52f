#include "profiler/cpu_limits.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
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

template <typename T = std::uint64_t>
std::optional<T> Number(std::string_view text) {
  T value = 0;
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

// What says how much CPU time a group may use.
class LimitFiles {
 public:
  explicit LimitFiles(const ControlGroup& group) {
    const bool two = group.version == CgroupVersion::kTwo;
    if (auto file = KeptFile::Open(group.folder / (two ? "cpu.max" : "cpu.cfs_quota_us"))) {
      quota_.emplace(*std::move(file));
    }
    if (two) return;
    if (auto file = KeptFile::Open(group.folder / "cpu.cfs_period_us")) period_.emplace(*std::move(file));
  }

  [[nodiscard]] std::optional<CpuLimit> Read() {
    if (!quota_) return std::nullopt;
    const auto first = quota_->Read();
    if (!first) return std::nullopt;
    std::string_view second = first->substr(std::min(first->find(' ') + 1, first->size()));
    if (period_) {
      const auto read = period_->Read();
      if (!read) return std::nullopt;
      second = *read;
    }
    // "max", or less than nothing, stands for none.
    const double quota = Number<double>(*first).value_or(0);
    const double period = Number<double>(second).value_or(0);
    const auto sane = [](double time) { return time >= 1 && time < kMostMicroseconds; };
    if (!sane(quota) || !sane(period)) return std::nullopt;
    return CpuLimit{.quota = microseconds(std::llround(quota)), .period = microseconds(std::llround(period))};
  }

 private:
  std::optional<KeptFile> quota_;
  std::optional<KeptFile> period_;  // In the same file in version 2.
};

class MeterV2 final : public CpuLimitMeter {
 public:
  MeterV2(const ControlGroup& group, KeptFile stat)
      : name_(group.folder.string()), limit_(group), stat_(std::move(stat)) {}
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::optional<CpuLimit> Limit() override { return limit_.Read(); }
  [[nodiscard]] Result<CpuUse> Use() override {
    TANDEM_ASSIGN(const std::string_view stat, stat_.Read());
    const auto used = Field(stat, "usage_usec");
    return UseOf(stat, used ? std::optional(nanoseconds(microseconds(*used))) : std::nullopt);
  }

 private:
  const std::string name_;
  LimitFiles limit_;
  KeptFile stat_;
};

// The limit and the use are of two controllers, which may be mounted apart.
class MeterV1 final : public CpuLimitMeter {
 public:
  MeterV1(const ControlGroup& group, KeptFile stat, KeptFile usage)
      : name_(group.folder.string()), limit_(group), stat_(std::move(stat)), usage_(std::move(usage)) {}
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::optional<CpuLimit> Limit() override { return limit_.Read(); }
  [[nodiscard]] Result<CpuUse> Use() override {
    TANDEM_ASSIGN(const nanoseconds used, Used());
    TANDEM_ASSIGN(const std::string_view stat, stat_.Read());
    return UseOf(stat, used);
  }
  [[nodiscard]] Result<nanoseconds> Used() override {
    TANDEM_ASSIGN(const std::string_view usage, usage_.Read());
    const auto used = Number(usage);
    if (!used) return Fail(ErrorCode::kUnavailable, "'{}': the CPU time that was used cannot be read", name_);
    return nanoseconds(*used);
  }

 private:
  const std::string name_;
  LimitFiles limit_;
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

std::optional<CpuLimit> ReadCpuLimit(const ControlGroup& group) {
  return LimitFiles(group).Read();
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
