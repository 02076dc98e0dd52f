#include "memory/shared_regions.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tandem {
namespace {

constexpr std::size_t kMaxNameLength = 255;

bool IsPlain(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return false;
  }
  return true;
}

// shm_open's own rule: one optional leading slash, then a plain name.
Status CheckKey(std::string_view key) {
  const std::string_view name = key.starts_with('/') ? key.substr(1) : key;
  if (name.empty() || name.size() > kMaxNameLength || name.contains('/') || name == "." || name == ".." ||
      !IsPlain(name)) {
    return Invalid("shared-memory key '{}' is not the name of a shared-memory object", key.substr(0, 100));
  }
  return {};
}

}  // namespace

SharedRegion::SharedRegion(std::string name, std::string key, std::uint64_t offset, std::uint64_t byte_size, int fd)
    : name_(std::move(name)), key_(std::move(key)), offset_(offset), byte_size_(byte_size), fd_(fd) {}

SharedRegion::~SharedRegion() {
  ::close(fd_);
}

Result<std::shared_ptr<const SharedRegion>> SharedRegion::Open(std::string name, std::string key, std::uint64_t offset,
                                                               std::uint64_t byte_size) {
  TANDEM_TRY(CheckKey(key));
  const int fd = ::shm_open(key.c_str(), O_RDWR | O_CLOEXEC, 0);
  if (fd < 0) {
    const int error = errno;
    // Not the client's mistake: it may try again.
    const bool ours = error == EMFILE || error == ENFILE || error == ENOMEM;
    return Fail(ours ? ErrorCode::kUnavailable : ErrorCode::kInvalidArgument,
                "shared-memory region '{}': cannot open key '{}': {}", name, key, std::strerror(error));
  }
  std::shared_ptr<const SharedRegion> region(new SharedRegion(std::move(name), std::move(key), offset, byte_size, fd));
  struct stat info{};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    return Invalid("shared-memory region '{}': key '{}' is not a shared-memory object", region->name(), region->key());
  }
  const auto available = static_cast<std::uint64_t>(info.st_size);
  if (byte_size == 0 || offset > available || byte_size > available - offset) {
    return Invalid("shared-memory region '{}': offset {} and byte_size {} do not fit the {} bytes of key '{}'",
                   region->name(), offset, byte_size, available, region->key());
  }
  return region;
}

Status SharedRegion::CheckRange(std::uint64_t offset, std::uint64_t size) const {
  if (offset > byte_size_ || size > byte_size_ - offset) {
    return Invalid("offset {} and byte_size {} do not fit the {} bytes of shared-memory region '{}'", offset, size,
                   byte_size_, name_);
  }
  struct stat info{};
  if (::fstat(fd_, &info) != 0 || static_cast<std::uint64_t>(info.st_size) < offset_ + offset + size) {
    return Invalid("shared-memory region '{}' has shrunk since it was registered", name_);
  }
  return {};
}

Result<AlignedBuffer> SharedRegion::Read(std::uint64_t offset, std::uint64_t size) const {
  TANDEM_TRY(CheckRange(offset, size));
  AlignedBuffer buffer(size);
  std::size_t done = 0;
  while (done < size) {
    const ssize_t n = ::pread(fd_, buffer.data() + done, size - done, static_cast<off_t>(offset_ + offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Invalid("shared-memory region '{}' could not be read", name_);
    done += static_cast<std::size_t>(n);
  }
  return buffer;
}

Status SharedRegion::Write(std::uint64_t offset, std::span<const std::byte> data) const {
  TANDEM_TRY(CheckRange(offset, data.size()));
  std::size_t done = 0;
  while (done < data.size()) {
    const ssize_t n =
        ::pwrite(fd_, data.data() + done, data.size() - done, static_cast<off_t>(offset_ + offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Invalid("shared-memory region '{}' could not be written", name_);
    done += static_cast<std::size_t>(n);
  }
  return {};
}

Status SharedRegions::Register(const std::string& name, const std::string& key, std::uint64_t offset,
                               std::uint64_t byte_size) {
  if (name.empty() || name.size() > kMaxNameLength || !IsPlain(name)) {
    return Invalid("shared-memory region name '{}' must have 1 to {} printable characters",
                   IsPlain(name) ? name.substr(0, 100) : "", kMaxNameLength);
  }
  TANDEM_ASSIGN(auto region, SharedRegion::Open(name, key, offset, byte_size));
  MutexLock lock(mu_);
  if (regions_.contains(name)) return Invalid("shared-memory region '{}' is registered already", name);
  if (regions_.size() >= max_regions_) {
    return Fail(ErrorCode::kUnavailable, "{} shared-memory regions are registered; no more are allowed", max_regions_);
  }
  regions_.emplace(name, std::move(region));
  return {};
}

void SharedRegions::Unregister(std::string_view name) {
  MutexLock lock(mu_);
  if (const auto it = regions_.find(name); it != regions_.end()) regions_.erase(it);
}

void SharedRegions::UnregisterAll() {
  MutexLock lock(mu_);
  regions_.clear();
}

Result<std::shared_ptr<const SharedRegion>> SharedRegions::Find(std::string_view name) const {
  MutexLock lock(mu_);
  const auto it = regions_.find(name);
  if (it == regions_.end()) {
    return Fail(ErrorCode::kNotFound, "shared-memory region '{}' is not registered", name.substr(0, 100));
  }
  return it->second;
}

std::vector<std::shared_ptr<const SharedRegion>> SharedRegions::All() const {
  MutexLock lock(mu_);
  std::vector<std::shared_ptr<const SharedRegion>> all;
  all.reserve(regions_.size());
  for (const auto& [name, region] : regions_) all.push_back(region);
  return all;
}

}  // namespace tandem
