#include "api/base/wake_word.h"

#include <climits>
#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tandem {

void WakeWord::Notify() {
  word_.fetch_add(1);
  ::syscall(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void WakeWord::Wait(std::uint32_t seen, std::optional<std::chrono::nanoseconds> at_most) {
  timespec time{};
  if (at_most) {
    if (*at_most <= std::chrono::nanoseconds(0)) return;
    time.tv_sec = at_most->count() / 1'000'000'000;
    time.tv_nsec = at_most->count() % 1'000'000'000;
  }
  ::syscall(SYS_futex, &word_, FUTEX_WAIT_PRIVATE, seen, at_most ? &time : nullptr, nullptr, 0);
}

}  // namespace tandem
