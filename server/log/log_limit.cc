#include "server/log/log_limit.h"

#include <chrono>
#include <utility>

namespace tandem {

std::optional<std::uint64_t> LogLimit::Allow(MonotonicTime now) {
  MutexLock lock(mu_);
  if (!second_began_ || now - *second_began_ >= std::chrono::seconds(1)) {
    second_began_ = now;
    written_ = 0;
  }
  if (written_ == lines_per_second_) {
    ++left_out_;
    return std::nullopt;
  }
  ++written_;
  return std::exchange(left_out_, 0);
}

}  // namespace tandem
