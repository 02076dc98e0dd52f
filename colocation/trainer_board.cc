#include "colocation/trainer_board.h"

#include <cerrno>
#include <climits>
#include <new>
#include <system_error>

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "api/base/errno_text.h"

namespace tandem {
namespace {

constexpr std::uint32_t kVersion = 1;

// The word is shared between processes, so the private forms of the call do not do.
void FutexWait(std::atomic<std::uint32_t>& word, std::uint32_t while_equal) {
  ::syscall(SYS_futex, &word, FUTEX_WAIT, while_equal, nullptr, nullptr, 0);
}

void FutexWakeAll(std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

// Each side writes to lines of its own.
struct TrainerBoard::Page {
  alignas(64) std::atomic<std::uint32_t> version;
  std::atomic<std::uint32_t> permit;
  alignas(64) std::atomic<std::uint64_t> ops;
  std::atomic<std::uint32_t> held;
};

Result<std::unique_ptr<TrainerBoard>> TrainerBoard::Create() {
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free);
  const int fd = ::memfd_create("tandem-board", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return Fail(ErrorCode::kInternal, "no shared page for a trainer can be made: {}", ErrnoText());
  // A trainer must not be able to take the page away under the server, which would end with SIGBUS.
  if (::ftruncate(fd, sizeof(Page)) != 0 || ::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    const std::string reason = ErrnoText();
    ::close(fd);
    return Fail(ErrorCode::kInternal, "no shared page for a trainer can be made: {}", reason);
  }
  void* const memory = ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) {
    const std::string reason = ErrnoText();
    ::close(fd);
    return Fail(ErrorCode::kInternal, "the shared page of a trainer cannot be mapped: {}", reason);
  }
  Page* const page = new (memory) Page{};
  page->version.store(kVersion, std::memory_order_release);
  return std::unique_ptr<TrainerBoard>(new TrainerBoard(fd, page));
}

Result<std::unique_ptr<TrainerBoard>> TrainerBoard::Attach(int fd) {
  struct stat status{};
  if (::fstat(fd, &status) != 0 || status.st_size != sizeof(Page)) return Invalid("descriptor {} is no board", fd);
  void* const memory = ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return Invalid("the board cannot be mapped: {}", ErrnoText());
  std::unique_ptr<TrainerBoard> board(new TrainerBoard(fd, static_cast<Page*>(memory)));
  const std::uint32_t version = board->page_->version.load(std::memory_order_acquire);
  if (version != kVersion) return Invalid("the board has version {}; this trainer knows {}", version, kVersion);
  return board;
}

TrainerBoard::~TrainerBoard() {
  ::munmap(page_, sizeof(Page));
  ::close(fd_);
}

void TrainerBoard::Set(Permit permit) {
  page_->permit.store(static_cast<std::uint32_t>(permit), std::memory_order_release);
  if (permit == Permit::kRun) FutexWakeAll(page_->permit);
}

TrainerSigns TrainerBoard::Signs() const {
  return {.ops = page_->ops.load(std::memory_order_relaxed), .held = page_->held.load(std::memory_order_relaxed) != 0};
}

void TrainerBoard::Pass() {
  // Only this thread writes it, so no locked addition is needed.
  page_->ops.store(page_->ops.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  constexpr auto kRun = static_cast<std::uint32_t>(Permit::kRun);
  std::uint32_t permit = page_->permit.load(std::memory_order_acquire);
  if (permit == kRun) return;
  page_->held.store(1, std::memory_order_relaxed);
  while (permit != kRun) {
    FutexWait(page_->permit, permit);
    permit = page_->permit.load(std::memory_order_acquire);
  }
  page_->held.store(0, std::memory_order_relaxed);
}

}  // namespace tandem
