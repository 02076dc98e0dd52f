#include "server/memory/limit_watch.h"

#include <array>
#include <cstdint>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "api/base/thread_name.h"
#include "profiler/control_groups.h"
#include "profiler/machine.h"

namespace tandem {

namespace fs = std::filesystem;

MemoryThere ReadMemoryThere(const fs::path& root) {
  const auto pages = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES));
  return {.device = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)), .limit = ReadMemoryLimit(root)};
}

LimitWatch::LimitWatch(fs::path root, const MemoryThere& known, std::chrono::milliseconds period, Changed changed)
    : root_(std::move(root)),
      period_(period),
      changed_(std::move(changed)),
      stop_(::eventfd(0, EFD_CLOEXEC)),
      notify_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
  // Without a way to end it there is no thread: the budget stays as it is.
  if (stop_ >= 0) thread_ = std::thread([this, known] { Run(known); });
}

LimitWatch::~LimitWatch() {
  if (thread_.joinable()) {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(stop_, &one, sizeof one);
    thread_.join();
  }
  if (stop_ >= 0) ::close(stop_);
  if (notify_ >= 0) ::close(notify_);
}

void LimitWatch::WatchFiles() {
  if (notify_ < 0) return;
  for (const ControlGroup& group : ControlGroups("memory", root_)) {
    const char* const file = group.version == CgroupVersion::kTwo ? "memory.max" : "memory.limit_in_bytes";
    // The same file once more is the same watch.
    ::inotify_add_watch(notify_, (group.folder / file).c_str(), IN_MODIFY);
  }
}

void LimitWatch::Run(MemoryThere known) {
  NameThread("memory");
  for (;;) {
    WatchFiles();
    // After it is watched: what was written before is seen here.
    if (const MemoryThere now = ReadMemoryThere(root_); now != known) {
      known = now;
      changed_(now);
    }
    std::array<pollfd, 2> polled = {
        {{.fd = stop_, .events = POLLIN, .revents = 0}, {.fd = notify_, .events = POLLIN, .revents = 0}}};
    ::poll(polled.data(), polled.size(), static_cast<int>(period_.count()));
    if (polled[0].revents != 0) return;
    std::array<char, 4096> events{};
    while (notify_ >= 0 && ::read(notify_, events.data(), events.size()) > 0) {
    }
  }
}

}  // namespace tandem
