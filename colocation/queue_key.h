#pragma once

#include <compare>
#include <cstdint>

#include "api/base/clock.h"

namespace tandem {

// The order of the queue: priority level, then earliest deadline, then arrival. No deadline counts as the latest.
struct QueueKey {
  std::uint64_t priority = 0;
  MonotonicTime deadline = MonotonicTime::max();
  std::uint64_t sequence = 0;

  friend auto operator<=>(const QueueKey&, const QueueKey&) = default;
};

}  // namespace tandem
