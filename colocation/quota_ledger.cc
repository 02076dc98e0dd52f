#include "colocation/quota_ledger.h"

#include <algorithm>
#include <utility>

namespace tandem {
namespace {

constexpr std::chrono::seconds kLimitStands{1};
constexpr std::chrono::milliseconds kShortestPeriod{10};
// So far from the beginning of a period none is counted, and nobody has to look for it.
constexpr std::chrono::milliseconds kMiddle{4};

}  // namespace

bool Binds(const CpuLimit& limit, int cores) {
  return limit.quota < cores * limit.period && limit.period >= kShortestPeriod;
}

void QuotaLedger::ReadLimit(MonotonicTime now) {
  if (limit_read_ && now - *limit_read_ < kLimitStands) return;
  limit_read_ = now;
  std::optional<CpuLimit> limit;
  const auto read = meter_->Limit();
  if (read && Binds(*read, cores_)) limit = *read;
  if (limit == limit_) return;
  if (!limit || !limit_ || limit->period != limit_->period) {
    period_clock_.reset();
    if (limit) period_clock_.emplace(limit->period);
    period_ends_.reset();
  }
  limit_ = limit;
}

std::optional<std::chrono::nanoseconds> QuotaLedger::ReadUse(MonotonicTime now) {
  const bool middle = period_clock_->known() && period_ends_ && *period_ends_ - now > kMiddle &&
                      *period_ends_ - now < limit_->period - kMiddle;
  if (middle) {
    const auto used = meter_->Used();
    return used ? std::optional(*used) : std::nullopt;
  }
  const auto use = meter_->Use();
  if (!use) return std::nullopt;
  throttled_ = use->throttled;
  period_clock_->Look(now, clock_.Now(), use->periods);
  return use->used;
}

void QuotaLedger::Look() {
  const MonotonicTime before = clock_.Now();
  ReadLimit(before);
  view_.reset();
  fresh_ = false;
  if (!limit_) return;
  const auto group_used = ReadUse(before);
  if (!group_used) return;
  const std::chrono::nanoseconds served = server_use_();
  const MonotonicTime now = clock_.Now();
  const MonotonicTime looked = std::exchange(looked_, now);
  const std::chrono::nanoseconds used_then = std::exchange(used_, *group_used);
  const std::chrono::nanoseconds served_then = std::exchange(served_, served);
  if (!period_clock_->known()) {
    period_ends_.reset();
    return;
  }
  const MonotonicTime begins = period_clock_->NextAfter(now + kLead) - limit_->period;
  const MonotonicTime ends = begins + limit_->period - kLead;
  fresh_ = !period_ends_ || ends - *period_ends_ > limit_->period / 2;
  // What was used before the period is at least what had been by a look before it, and at least what has been by now
  // less what can have been since.
  if (fresh_ && looked <= begins) {
    used_before_ = used_then;
    served_before_ = served_then;
  } else if (fresh_) {
    used_before_ = served_before_ = std::chrono::nanoseconds::min();
  }
  const std::chrono::nanoseconds late = std::max(std::chrono::nanoseconds(0), now - begins);
  used_before_ = std::max(used_before_, *group_used - cores_ * late);
  served_before_ = std::max(served_before_, served - cores_ * late);
  const std::chrono::nanoseconds used = std::max(*group_used - used_before_, served - served_before_);
  period_ends_ = ends;
  view_ = QuotaView{.quota = limit_->quota, .left = limit_->quota - used, .until_refill = ends - now};
}

}  // namespace tandem
