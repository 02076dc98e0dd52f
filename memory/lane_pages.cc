#include "memory/lane_pages.h"

#include <limits>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "api/base/errno_text.h"

namespace tandem {

Result<std::unique_ptr<LanePages>> LanePages::Create() {
  const int fd = ::memfd_create("tandem-lane", MFD_CLOEXEC);
  if (fd < 0) return Fail(ErrorCode::kUnavailable, "a lane cannot be made: {}", ErrnoText());
  return std::unique_ptr<LanePages>(new LanePages(fd));
}

LanePages::~LanePages() {
  ::close(fd_);
}

Status LanePages::SetLength(std::uint64_t bytes) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());
  if (bytes > kMost || ::ftruncate(fd_, static_cast<off_t>(bytes)) != 0) {
    return Fail(ErrorCode::kTooLarge, "a lane cannot have {} bytes: {}", bytes, ErrnoText());
  }
  length_ = bytes;
  return {};
}

void LanePages::Clear() const {
  (void)::fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(length_));
}

}  // namespace tandem
