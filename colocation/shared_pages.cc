#include "colocation/shared_pages.h"

#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/base/errno_text.h"

namespace tandem {

Result<std::unique_ptr<SharedPages>> SharedPages::Create(const char* name, std::size_t bytes, Others others) {
  const int fd = ::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return Fail(ErrorCode::kInternal, "no shared memory for trainers can be made: {}", ErrnoText());
  void* data = MAP_FAILED;
  if (::ftruncate(fd, static_cast<off_t>(bytes)) == 0) {
    data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  // Without the first two a trainer could take the pages away under the server, which would end with SIGBUS. The last
  // comes after our own mapping, which it leaves as it is.
  const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | (others == Others::kRead ? F_SEAL_FUTURE_WRITE : 0);
  if (data == MAP_FAILED || ::fcntl(fd, F_ADD_SEALS, seals) != 0) {
    const std::string reason = ErrnoText();
    if (data != MAP_FAILED) ::munmap(data, bytes);
    ::close(fd);
    return Fail(ErrorCode::kInternal, "no shared memory for trainers can be made: {}", reason);
  }
  return std::unique_ptr<SharedPages>(new SharedPages(fd, data, bytes));
}

Result<std::unique_ptr<SharedPages>> SharedPages::Attach(int fd, std::size_t bytes, Others others) {
  struct stat status{};
  if (::fstat(fd, &status) != 0 || status.st_size != static_cast<off_t>(bytes)) {
    return Invalid("descriptor {} is no shared memory of {} bytes", fd, bytes);
  }
  const int access = others == Others::kRead ? PROT_READ : PROT_READ | PROT_WRITE;
  void* const data = ::mmap(nullptr, bytes, access, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) return Invalid("the shared memory at descriptor {} cannot be mapped: {}", fd, ErrnoText());
  return std::unique_ptr<SharedPages>(new SharedPages(fd, data, bytes));
}

SharedPages::~SharedPages() {
  ::munmap(data_, bytes_);
  ::close(fd_);
}

}  // namespace tandem
