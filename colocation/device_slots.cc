#include "colocation/device_slots.h"

#include <algorithm>

namespace tandem {
namespace {

// Less is no delay worth to act upon.
constexpr std::chrono::milliseconds kLeastDelay{1};

}  // namespace

bool DeviceSlots::Sits(std::size_t seat) const {
  return std::ranges::any_of(
      spans_, [seat](const Span& span) { return span.begins != MonotonicTime::min() && span.seat == seat; });
}

std::size_t DeviceSlots::Begin(std::size_t worker, RunWidth width, MonotonicTime begins, MonotonicTime ends) {
  std::size_t seat = width == RunWidth::kAll ? 0 : spans_[worker].seat;
  if (width == RunWidth::kOne && Sits(seat)) {
    for (seat = 0; Sits(seat);) ++seat;
  }
  spans_[worker] = {.begins = begins, .ends = ends, .seat = seat};
  ++running_;
  exclusive_ = widths_ && width == RunWidth::kAll;
  return seat;
}

void DeviceSlots::End(std::size_t worker, MonotonicTime now) {
  spans_[worker] = {.seat = spans_[worker].seat};
  --running_;
  exclusive_ = false;
  if (widths_) free_since_ = now;
}

void DeviceSlots::Rests(MonotonicTime now, std::vector<std::chrono::nanoseconds>& rests) const {
  rests.clear();
  for (const Span& span : spans_) rests.push_back(span.ends > now ? span.ends - now : std::chrono::nanoseconds(0));
  if (exclusive_) std::ranges::fill(rests, std::ranges::max(rests));
}

MonotonicTime DeviceSlots::OverdueAt() const {
  MonotonicTime first = MonotonicTime::max();
  for (const Span& span : spans_) {
    if (span.begins == MonotonicTime::min()) continue;
    const std::chrono::nanoseconds delay = (span.ends - span.begins) / 4;
    first = std::min(first, span.ends + std::max<std::chrono::nanoseconds>(delay, kLeastDelay));
  }
  return first;
}

}  // namespace tandem
