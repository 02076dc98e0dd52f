#include "runtimes/training/checkpoint/durable_file.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "api/base/errno_text.h"

namespace tandem::training {

Result<DurableFile> DurableFile::Create(const std::filesystem::path& file) {
  std::filesystem::path aside = file;
  aside += ".partial";
  const int fd = ::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return Fail(ErrorCode::kInternal, "'{}' cannot be made: {}", aside.string(), ErrnoText());
  return DurableFile(file, std::move(aside), fd);
}

DurableFile::DurableFile(DurableFile&& other) noexcept
    : file_(std::move(other.file_)), aside_(std::move(other.aside_)), fd_(std::exchange(other.fd_, -1)) {}

DurableFile::~DurableFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(aside_.c_str());
}

std::unexpected<Error> DurableFile::Failed(const char* what) const {
  return Fail(ErrorCode::kInternal, "'{}' cannot be {}: {}", file_.string(), what, ErrnoText());
}

Status DurableFile::Write(std::span<const std::byte> data) {
  while (!data.empty()) {
    const ssize_t written = ::write(fd_, data.data(), data.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Failed("written");
    data = data.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

Status DurableFile::Commit() {
  if (::fsync(fd_) != 0) return Failed("flushed to the disk");
  if (::rename(aside_.c_str(), file_.c_str()) != 0) return Failed("put in place");
  ::close(std::exchange(fd_, -1));
  // The name is on the disk only when the folder is.
  const int folder = ::open(file_.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return Failed("flushed to the disk with its folder");
  const bool flushed = ::fsync(folder) == 0;
  ::close(folder);
  if (!flushed) return Failed("flushed to the disk with its folder");
  return {};
}

}  // namespace tandem::training
