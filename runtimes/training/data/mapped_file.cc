#include "runtimes/training/data/mapped_file.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/base/errno_text.h"
#include "api/base/mutex.h"

namespace tandem::training {
namespace {

constexpr std::size_t kMostGuarded = 1024;  // Mapped at once; further ones are not guarded.
constexpr std::size_t kLongestName = 320;

// Read by a signal handler, so nothing in it may lock or allocate. `start` is written last, and taken back first.
struct Guarded {
  std::atomic<std::uintptr_t> start{0};
  std::atomic<std::size_t> size{0};
  std::array<char, kLongestName> name{};
  int descriptor = -1;  // Guarded by `mu`; owned.
};
static_assert(std::atomic<std::uintptr_t>::is_always_lock_free && std::atomic<std::size_t>::is_always_lock_free);

// Constant initialisation: the handler may run at any time.
constinit std::array<Guarded, kMostGuarded> guarded;
constinit std::atomic<bool> any_lost{false};
constinit std::array<char, kLongestName> lost_name{};  // Written once, before any_lost.
constinit std::atomic<bool> naming{false};
constinit std::size_t page_bytes = 4096;
Mutex mu;                               // For all but the handler.
std::size_t places GUARDED_BY(mu) = 0;  // That have ever been taken: the first ones.

void Remember(const Guarded& file) {
  if (naming.exchange(true)) return;
  lost_name = file.name;
  any_lost.store(true);
}

// A place in the table; kMostGuarded when it is full.
std::size_t Guard(int descriptor, void* start, std::size_t size, const std::string& name) {
  const MutexLock lock(mu);
  const auto free = std::ranges::find_if(guarded, [](const Guarded& one) { return one.start.load() == 0; });
  if (free == guarded.end()) return kMostGuarded;
  const std::size_t length = std::min(name.size(), kLongestName - 1);
  std::memcpy(free->name.data(), name.data(), length);
  free->name[length] = '\0';
  free->descriptor = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  free->size.store(size);
  free->start.store(reinterpret_cast<std::uintptr_t>(start));
  const auto place = static_cast<std::size_t>(free - guarded.begin());
  places = std::max(places, place + 1);
  return place;
}

// Puts zeros in the place of what is gone: from the page that was read to the end of the mapping.
void OnBusError(int number, siginfo_t* info, void*) {
  const int error = errno;
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (const Guarded& one : guarded) {
    const std::uintptr_t start = one.start.load();
    const std::uintptr_t end = start + one.size.load();
    if (start == 0 || address < start || address >= (end + page_bytes - 1) / page_bytes * page_bytes) continue;
    const std::uintptr_t page = address / page_bytes * page_bytes;
    if (::mmap(reinterpret_cast<void*>(page), end - page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
        MAP_FAILED) {
      break;
    }
    Remember(one);
    errno = error;
    return;
  }
  // Not ours: it ends the process when the instruction is tried again.
  ::signal(number, SIG_DFL);
}

}  // namespace

Result<MappedFile> MappedFile::Map(int descriptor, std::size_t size, const std::string& name) {
  MappedFile mapped;
  if (size == 0) return mapped;
  void* const start = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (start == MAP_FAILED) return Invalid("data '{}' cannot be read: {}", name, ErrnoText());
  mapped.start_ = start;
  mapped.size_ = size;
  mapped.place_ = Guard(descriptor, start, size, name);
  return mapped;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : start_(std::exchange(other.start_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      place_(std::exchange(other.place_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(start_, other.start_);
  std::swap(size_, other.size_);
  std::swap(place_, other.place_);
  return *this;
}

MappedFile::~MappedFile() {
  if (start_ == nullptr) return;
  if (place_ < kMostGuarded) {
    const MutexLock lock(mu);
    guarded[place_].start.store(0);
    if (const int descriptor = std::exchange(guarded[place_].descriptor, -1); descriptor >= 0) ::close(descriptor);
  }
  ::munmap(start_, size_);
}

void GuardMappedFiles() {
  page_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  struct sigaction action{};
  action.sa_sigaction = OnBusError;
  action.sa_flags = SA_SIGINFO;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

Status CheckNoFileLost() {
  {
    // The rest of the page in which a file ends reads as zeros and raises nothing.
    const MutexLock lock(mu);
    for (const Guarded& one : std::span(guarded).first(places)) {
      struct stat status{};
      if (one.start.load() == 0 || ::fstat(one.descriptor, &status) != 0) continue;
      if (static_cast<std::size_t>(status.st_size) < one.size.load()) Remember(one);
    }
  }
  if (!any_lost.load()) return {};
  return Invalid("data '{}' changed while it was read: a part of the file is gone, or its disk cannot be read",
                 lost_name.data());
}

}  // namespace tandem::training
