#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "api/base/clock.h"

namespace tandem {

// Learns when the periods of a CPU limit begin. The kernel tells only how many have begun; but they begin on a grid of
// the monotonic clock that stays the same for as long as the group is there, so two looks close to one another with a
// beginning between them tell all of them. While the group has nothing to run, periods are not counted.
// No clock, no locks; used by one thread.
class PeriodClock {
 public:
  // Beginnings are known when they are known to this.
  static constexpr std::chrono::microseconds kPrecision{2'000};
  // So much later than it begins may a period be counted.
  static constexpr std::chrono::microseconds kLate{300};

  explicit PeriodClock(std::chrono::nanoseconds period) : period_(period) {}

  // The count was read at some time between the two.
  void Look(MonotonicTime before, MonotonicTime after, std::uint64_t periods);

  [[nodiscard]] bool known() const { return beginning_.has_value(); }
  // The first beginning after `time`, at the earliest. Only when it is known.
  [[nodiscard]] MonotonicTime NextAfter(MonotonicTime time) const;

 private:
  // One beginning was after `from`, and not after `to`.
  struct Span {
    MonotonicTime from;
    MonotonicTime to;
  };
  struct Seen {
    MonotonicTime at;  // Not later than the count was read.
    std::uint64_t periods = 0;
  };

  // The same beginning, as many periods later as it takes to end after `time`.
  [[nodiscard]] Span Later(Span span, MonotonicTime time) const;
  void Learn(Span span);
  // Whether as many were counted as there should have been.
  [[nodiscard]] bool Fits(Span between, std::uint64_t counted) const;

  const std::chrono::nanoseconds period_;
  std::optional<Seen> seen_;
  std::optional<Span> beginning_;
};

}  // namespace tandem
