#include "colocation/period_clock.h"

#include <algorithm>

namespace tandem {

PeriodClock::Span PeriodClock::Later(Span span, MonotonicTime time) const {
  if (span.to > time) return span;
  const auto periods = (time - span.to) / period_ + 1;
  return {.from = span.from + periods * period_, .to = span.to + periods * period_};
}

void PeriodClock::Learn(Span span) {
  if (beginning_) {
    const Span expected = Later(*beginning_, span.from);
    if (expected.from + period_ < span.to) return;  // It may have been this one or the next.
    const Span both{.from = std::max(expected.from, span.from), .to = std::min(expected.to, span.to)};
    if (both.from < both.to) {
      beginning_ = both;
      return;
    }
  }
  beginning_.reset();
  if (span.to - span.from <= kPrecision) beginning_ = span;
}

bool PeriodClock::Fits(Span between, std::uint64_t counted) const {
  // Fewer may be counted, when there was nothing to run; more may not.
  const Span first = Later(*beginning_, between.from);
  if (first.from >= between.to) return counted == 0;
  return counted <= static_cast<std::uint64_t>((between.to - first.from) / period_) + 1;
}

void PeriodClock::Look(MonotonicTime before, MonotonicTime after, std::uint64_t periods) {
  const std::optional<Seen> last = seen_;
  seen_ = {.at = before, .periods = periods};
  if (!last || periods == last->periods) return;
  // A group that was made anew begins to count again.
  if (periods < last->periods) {
    beginning_.reset();
    return;
  }
  const Span between{.from = last->at - kLate, .to = after};
  const std::uint64_t counted = periods - last->periods;
  if (beginning_ && !Fits(between, counted)) beginning_.reset();
  if (counted == 1 && between.to - between.from < period_) {
    if (between.to - between.from <= kPrecision || beginning_) Learn(between);
  }
}

MonotonicTime PeriodClock::NextAfter(MonotonicTime time) const {
  Span span = Later(*beginning_, time);
  while (span.from <= time) span = {.from = span.from + period_, .to = span.to + period_};
  return span.from;
}

}  // namespace tandem
