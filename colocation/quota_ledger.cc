#include "colocation/quota_ledger.h"

#include <algorithm>

namespace tandem {
namespace {

constexpr std::chrono::seconds kLimitStands{1};

}  // namespace

void QuotaLedger::ReadLimit(MonotonicTime now) {
  if (limit_read_ && now - *limit_read_ < kLimitStands) return;
  limit_read_ = now;
  std::optional<CpuLimit> limit;
  const auto read = meter_->Limit();
  if (read && read->quota < parallelism_ * read->period && read->period >= kShortestPeriod) limit = *read;
  if (limit == limit_) return;
  if (!limit || !limit_ || limit->period != limit_->period) {
    period_clock_.reset();
    if (limit) period_clock_.emplace(limit->period);
    period_ends_.reset();
  }
  limit_ = limit;
}

void QuotaLedger::Look() {
  const MonotonicTime before = clock_.Now();
  ReadLimit(before);
  view_.reset();
  if (!limit_) return;
  const auto use = meter_->Use();
  if (!use) return;
  const MonotonicTime now = clock_.Now();
  throttled_ = use->throttled;
  period_clock_->Look(before, now, use->periods);
  if (!period_clock_->known()) {
    period_ends_.reset();
    return;
  }
  const MonotonicTime ends = period_clock_->NextAfter(now + kLead) - kLead;
  if (!period_ends_ || ends - *period_ends_ > limit_->period / 2) {
    // What may have been used since it began, unseen by us, counts.
    const std::chrono::nanoseconds late = std::max(std::chrono::nanoseconds(0), now - (ends - limit_->period));
    used_before_ = use->used - parallelism_ * late;
  }
  period_ends_ = ends;
  view_ = QuotaView{.left = limit_->quota - (use->used - used_before_), .until_refill = ends - now};
}

}  // namespace tandem
