#include "colocation/quota_ledger.h"

#include <algorithm>
#include <utility>

#include "api/base/duration.h"

namespace tandem {
namespace {

constexpr std::chrono::seconds kLimitStands{1};
// Between two looks that tell how many cores are busy.
constexpr std::chrono::milliseconds kMostTime{50};
constexpr double kForgetting = 0.995;
constexpr double kEnough = 0.5;  // Seconds.

}  // namespace

void QuotaLedger::ReadLimit(MonotonicTime now) {
  if (limit_read_ && now - *limit_read_ < kLimitStands) return;
  limit_read_ = now;
  std::optional<CpuLimit> limit;
  const auto read = meter_->Limit();
  if (read && read->quota < cores_ * read->period && read->period >= kShortestPeriod) limit = *read;
  if (limit == limit_) return;
  if (!limit || !limit_ || limit->period != limit_->period) {
    period_clock_.reset();
    if (limit) period_clock_.emplace(limit->period);
    period_ends_.reset();
  }
  limit_ = limit;
}

void QuotaLedger::LearnBusy(Since since, MonotonicTime now, std::chrono::nanoseconds used) {
  const std::chrono::nanoseconds time = now - std::exchange(looked_, now);
  const std::chrono::nanoseconds use = used - std::exchange(used_, used);
  if (since == Since::kOther || time > kMostTime) return;
  trained_ = kForgetting * trained_ + (since == Since::kTrained ? Seconds(time) : 0);
  trained_use_ = kForgetting * trained_use_ + Seconds(use);
}

std::optional<double> QuotaLedger::Busy() const {
  if (trained_ < kEnough) return std::nullopt;
  return trained_use_ / trained_;
}

void QuotaLedger::Look(Since since) {
  const MonotonicTime before = clock_.Now();
  ReadLimit(before);
  view_.reset();
  fresh_ = false;
  if (!limit_) return;
  const auto use = meter_->Use();
  if (!use) return;
  const MonotonicTime now = clock_.Now();
  throttled_ = use->throttled;
  LearnBusy(since, now, use->used);
  period_clock_->Look(before, now, use->periods);
  if (!period_clock_->known()) {
    period_ends_.reset();
    return;
  }
  const MonotonicTime begins = period_clock_->NextAfter(now + kLead) - limit_->period;
  const MonotonicTime ends = begins + limit_->period - kLead;
  // What may have been used since it began, unseen by us, counts.
  const std::chrono::nanoseconds late = std::max(std::chrono::nanoseconds(0), now - begins);
  const std::chrono::nanoseconds served = server_use_();
  fresh_ = !period_ends_ || ends - *period_ends_ > limit_->period / 2;
  used_before_ = std::max(fresh_ ? std::chrono::nanoseconds::min() : used_before_, use->used - cores_ * late);
  served_before_ = std::max(fresh_ ? std::chrono::nanoseconds::min() : served_before_, served - cores_ * late);
  const std::chrono::nanoseconds used = std::max(use->used - used_before_, served - served_before_);
  period_ends_ = ends;
  view_ = QuotaView{.quota = limit_->quota, .left = limit_->quota - used, .until_refill = ends - now, .busy = Busy()};
}

}  // namespace tandem
