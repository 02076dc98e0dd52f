#include "server/jobs/state_lock.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tandem::jobs {
namespace {

// The process that the holder wrote down; "?" in the moment before it does.
std::string Holder(int descriptor) {
  std::array<char, 24> text{};
  const ssize_t length = ::pread(descriptor, text.data(), text.size(), 0);
  const std::string_view read(text.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  const std::string_view digits = read.substr(0, read.find_first_not_of("0123456789"));
  return digits.empty() ? "?" : std::string(digits);
}

Status MakeDirectory(const std::filesystem::path& directory) {
  std::error_code error;
  if (!directory.parent_path().empty()) std::filesystem::create_directories(directory.parent_path(), error);
  if (::mkdir(directory.c_str(), 0700) == 0) return {};
  const int reason = errno;
  if (std::filesystem::is_directory(directory, error)) return {};
  return Fail(ErrorCode::kUnavailable, "the state directory '{}' cannot be made: {}", directory.string(),
              std::generic_category().message(reason));
}

}  // namespace

Result<StateLock> StateLock::Acquire(const std::filesystem::path& directory) {
  TANDEM_TRY(MakeDirectory(directory));
  const std::filesystem::path file = directory / "lock";
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor < 0) {
    return Fail(ErrorCode::kUnavailable, "'{}' cannot be opened for writing: {}", file.string(),
                std::generic_category().message(errno));
  }
  StateLock lock(descriptor);
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) {
      return Fail(ErrorCode::kUnavailable, "'{}' cannot be locked: {}", file.string(),
                  std::generic_category().message(errno));
    }
    return Fail(
        ErrorCode::kConflict,
        "the state directory '{}' is in use by process {}; stop that server, or give this one another directory",
        directory.string(), Holder(descriptor));
  }
  const std::string process = std::to_string(::getpid()) + "\n";
  // Only for the message to others; on a full disk it says "?".
  if (::ftruncate(descriptor, 0) == 0) {
    [[maybe_unused]] const ssize_t written = ::pwrite(descriptor, process.data(), process.size(), 0);
  }
  return lock;
}

StateLock::~StateLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

StateLock::StateLock(StateLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

}  // namespace tandem::jobs
