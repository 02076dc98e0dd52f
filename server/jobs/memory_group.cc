#include "server/jobs/memory_group.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <ranges>
#include <thread>

#include <fcntl.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "api/base/errno_text.h"
#include "api/base/format.h"

namespace tandem::jobs {
namespace {

namespace fs = std::filesystem;

bool HasFile(const fs::path& file) {
  std::error_code ec;
  return fs::exists(file, ec);
}

bool IsSecondVersion(const fs::path& folder) {
  return HasFile(folder / "cgroup.controllers");
}

// Whether `word` is among those in the file.
bool Lists(const fs::path& file, std::string_view word) {
  std::ifstream in(file);
  for (std::string one; in >> one;) {
    if (one == word) return true;
  }
  return false;
}

// The kernel takes a value whole or refuses it, and says so when it is written.
Status Put(const fs::path& file, const std::string& value) {
  const int descriptor = ::open(file.c_str(), O_WRONLY | O_CLOEXEC | O_TRUNC);
  if (descriptor < 0) return Fail(ErrorCode::kUnavailable, "'{}' cannot be opened: {}", file.string(), ErrnoText());
  const ssize_t written = ::write(descriptor, value.data(), value.size());
  const std::string why = written < 0 ? ErrnoText() : "";
  ::close(descriptor);
  if (written < 0) {
    return Fail(ErrorCode::kUnavailable, "'{}' cannot be written to '{}': {}", value, file.string(), why);
  }
  return {};
}

// The number behind `key` in a file of lines "key number"; 0 when there is none.
std::uint64_t NumberIn(const fs::path& file, std::string_view key) {
  std::ifstream in(file);
  std::string name;
  std::uint64_t number = 0;
  while (in >> name >> number) {
    if (name == key) return number;
  }
  return 0;
}

Status EnableMemory(const fs::path& parent) {
  if (!Lists(parent / "cgroup.controllers", "memory")) {
    return Fail(ErrorCode::kUnavailable, "control group '{}' has no memory controller; it has to be enabled above it",
                parent.string());
  }
  if (Lists(parent / "cgroup.subtree_control", "memory")) return {};
  return Put(parent / "cgroup.subtree_control", "+memory");
}

// Its file is there only when the parent shares out the CPU.
Status KeepBehindServer(const fs::path& group) {
  if (!HasFile(group / "cpu.weight")) return {};
  if (HasFile(group / "cpu.idle")) return Put(group / "cpu.idle", "1");
  return Fail(ErrorCode::kUnavailable,
              "control group '{}' has a share of the CPU of its own, and cannot be idle: a trainer in it would take "
              "time from requests; disable the cpu controller for it",
              group.string());
}

Status SetLimit(const fs::path& group, bool second_version, std::uint64_t bytes) {
  const std::string limit = std::to_string(bytes);
  if (!second_version) {
    TANDEM_TRY(Put(group / "memory.limit_in_bytes", limit));
    // Pages that are swapped out count with this one; only where the kernel counts them.
    if (!HasFile(group / "memory.memsw.limit_in_bytes")) return {};
    return Put(group / "memory.memsw.limit_in_bytes", limit);
  }
  TANDEM_TRY(Put(group / "memory.max", limit));
  if (HasFile(group / "memory.swap.max")) TANDEM_TRY(Put(group / "memory.swap.max", "0"));
  return KeepBehindServer(group);
}

// Whether a process of ours can get in, and out again by ending; one that has ended since has tried.
Status TryDoor(int door, const fs::path& file) {
  constexpr std::chrono::milliseconds kLook{2};
  constexpr int kMostLooks = 2500;
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(::write(door, "0", 1) == 1 ? 0 : errno);
  if (pid < 0) return Fail(ErrorCode::kUnavailable, "no process can be started: {}", ErrnoText());
  int status = 0;
  for (int look = 0; ::waitpid(pid, &status, WNOHANG) != pid; ++look) {
    if (look == kMostLooks) {
      // It is not waited for: in a group that is frozen it may not even end.
      ::kill(pid, SIGKILL);
      return Fail(ErrorCode::kUnavailable, "a process that was moved by '{}' does not go on", file.string());
    }
    std::this_thread::sleep_for(kLook);
  }
  if (!WIFEXITED(status)) return Fail(ErrorCode::kUnavailable, "a process moved by '{}' was ended", file.string());
  if (WEXITSTATUS(status) == 0) return {};
  errno = WEXITSTATUS(status);
  return Fail(ErrorCode::kUnsupported, "no process can be moved by '{}': {}", file.string(), ErrnoText());
}

// systemd marks what it hands over; which of the two depends on whether the service runs as root.
bool IsDelegated(const fs::path& group) {
  for (const char* const name : {"user.delegate", "trusted.delegate"}) {
    char value = 0;
    if (::getxattr(group.c_str(), name, &value, 1) == 1 && value == '1') return true;
  }
  return false;
}

}  // namespace

std::optional<fs::path> DelegatedGroup(std::string_view membership, const fs::path& root) {
  constexpr std::string_view kSecondVersion = "0::/";
  for (const auto part : std::views::split(membership, '\n')) {
    const std::string_view line(part);
    if (!line.starts_with(kSecondVersion)) continue;
    const fs::path own(line.substr(kSecondVersion.size()));
    if (own.empty() || own.parent_path().extension() != ".service") return std::nullopt;
    // A unit of its own below a manager, to whom the group was delegated; not a part of one unit.
    if (own.has_extension()) return std::nullopt;
    const fs::path above = root / own.parent_path();
    return IsDelegated(above) ? std::optional(above) : std::nullopt;
  }
  return std::nullopt;
}

Status MemoryGroup::Check(const fs::path& parent) {
  std::error_code ec;
  if (!fs::is_directory(parent, ec)) {
    return Fail(ErrorCode::kUnavailable, "control group '{}' is not there", parent.string());
  }
  if (IsSecondVersion(parent)) {
    TANDEM_TRY(EnableMemory(parent));
  } else if (!HasFile(parent / "memory.limit_in_bytes")) {
    return Fail(ErrorCode::kUnavailable, "'{}' is no control group with a memory controller", parent.string());
  }
  TANDEM_ASSIGN(const auto trial, Make(parent, Format("tandem-trial-{}", ::getpid()), std::uint64_t{1} << 30));
  return {};
}

Result<std::unique_ptr<MemoryGroup>> MemoryGroup::Make(const fs::path& parent, const std::string& name,
                                                       std::uint64_t bytes) {
  const fs::path folder = parent / name;
  std::error_code ec;
  fs::create_directory(folder, ec);
  if (ec) {
    return Fail(ErrorCode::kUnavailable, "control group '{}' cannot be made: {}", folder.string(), ec.message());
  }
  const bool second_version = IsSecondVersion(parent);
  const fs::path door_file = folder / "cgroup.procs";
  const int door = ::open(door_file.c_str(), O_WRONLY | O_CLOEXEC);
  const std::string why = door < 0 ? ErrnoText() : "";
  std::unique_ptr<MemoryGroup> group(new MemoryGroup(folder, second_version, door));  // Removes it from here on.
  if (door < 0) return Fail(ErrorCode::kUnavailable, "'{}' cannot be opened: {}", door_file.string(), why);
  TANDEM_TRY(TryDoor(door, door_file));
  TANDEM_TRY(SetLimit(folder, second_version, bytes));
  group->kills_before_ = group->Kills();
  return group;
}

MemoryGroup::~MemoryGroup() {
  if (door_ >= 0) ::close(door_);
  // One that still holds a process stays; the next trainer of the job uses it again.
  ::rmdir(folder_.c_str());
}

std::uint64_t MemoryGroup::Kills() const {
  return NumberIn(folder_ / (second_version_ ? "memory.events" : "memory.oom_control"), "oom_kill");
}

bool MemoryGroup::HasKilled() const {
  return Kills() > kills_before_;
}

}  // namespace tandem::jobs
