#include "runtimes/training/data/data_root.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/base/format.h"
#include "runtimes/onnx/readable_text.h"

namespace tandem::training {
namespace {

namespace fs = std::filesystem;

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&&) = delete;
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

std::string LinkTo(int fd) {
  return Format("/proc/self/fd/{}", fd);
}

std::unexpected<Error> CannotOpen(const std::string& path, int error) {
  const bool missing = error == ENOENT || error == ENOTDIR;
  return Fail(missing ? ErrorCode::kNotFound : ErrorCode::kInvalidArgument, "data '{}' cannot be read: {}", Shown(path),
              std::error_code(error, std::generic_category()).message());
}

bool IsInside(const fs::path& path, const fs::path& folder) {
  const auto [in_folder, in_path] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return in_folder == folder.end();
}

// A handle on what the path leads to, which can be looked at but not read: opening a pipe or a device has effects. What
// it stands for cannot change any more, as a path could.
Result<FileDescriptor> Find(const fs::path& root, const std::string& path) {
  if (path.empty() || path.contains('\0')) return Invalid("'{}' is no path of data", Shown(path));
  FileDescriptor found(::open((root / path).c_str(), O_PATH | O_CLOEXEC));
  if (found.get() < 0) {
    const int error = errno;
    // What there is outside the root is nobody's business: the answer is the same whether or not it exists.
    if (IsInside((root / path).lexically_normal(), root)) return CannotOpen(path, error);
    return Invalid("data path '{}' is outside the data root", Shown(path));
  }
  std::error_code failed;
  const fs::path real = fs::read_symlink(LinkTo(found.get()), failed);
  if (failed) return Fail(ErrorCode::kInternal, "data '{}' cannot be checked: {}", Shown(path), failed.message());
  if (!IsInside(real, root)) return Invalid("data path '{}' is outside the data root", Shown(path));
  return found;
}

Result<struct stat> StatusOf(const FileDescriptor& file, const std::string& path) {
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return CannotOpen(path, errno);
  return status;
}

}  // namespace

std::string Shown(std::string_view text) {
  return Readable(text, 300);
}

Result<DataRoot> DataRoot::Open(const fs::path& root) {
  std::error_code error;
  fs::path real = fs::canonical(root, error);
  if (error || !fs::is_directory(real, error)) {
    return Fail(ErrorCode::kNotFound, "the data root '{}' is no folder that can be read", Shown(root.string()));
  }
  return DataRoot(std::move(real));
}

Result<MappedFile> DataRoot::Map(const std::string& path) const {
  TANDEM_ASSIGN(const FileDescriptor found, Find(real_, path));
  TANDEM_ASSIGN(const struct stat status, StatusOf(found, path));
  if (!S_ISREG(status.st_mode)) return Invalid("data '{}' is no regular file", Shown(path));
  const FileDescriptor file(::open(LinkTo(found.get()).c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return CannotOpen(path, errno);
  return MappedFile::Map(file.get(), static_cast<std::size_t>(status.st_size), Shown(path));
}

Result<bool> DataRoot::IsFolder(const std::string& path) const {
  TANDEM_ASSIGN(const FileDescriptor found, Find(real_, path));
  TANDEM_ASSIGN(const struct stat status, StatusOf(found, path));
  return S_ISDIR(status.st_mode);
}

Result<std::vector<std::string>> DataRoot::List(const std::string& folder, std::size_t most) const {
  TANDEM_ASSIGN(const FileDescriptor found, Find(real_, folder));
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator it(LinkTo(found.get()), error), end; !error && it != end; it.increment(error)) {
    std::string name = it->path().filename().string();
    if (name.starts_with('.')) continue;
    if (names.size() == most) {
      return Fail(ErrorCode::kTooLarge, "data folder '{}' holds more than {} files", Shown(folder), most);
    }
    names.push_back(std::move(name));
  }
  if (error) return CannotOpen(folder, error.value());
  std::ranges::sort(names);
  return names;
}

}  // namespace tandem::training
