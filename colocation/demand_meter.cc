#include "colocation/demand_meter.h"

#include <algorithm>
#include <cmath>

#include "api/base/duration.h"

namespace tandem {
namespace {

constexpr std::chrono::milliseconds kStretch{100};
// One that is longer says too little: nobody has looked for a while.
constexpr std::chrono::milliseconds kLongestStretch{1'000};
// Seconds: that are enough to tell, that count when demand has grown, and that are remembered.
constexpr double kEnough = 2;
constexpr double kEnoughBusy = 0.2;
constexpr double kLately = 0.5;
constexpr double kLong = 5;
// What one uses until there were enough to tell; then, how many are remembered.
constexpr double kUnknownRequest = 0.02;
constexpr double kFewRequests = 20;
constexpr double kRequests = 200;

std::chrono::nanoseconds Time(double seconds) {
  return std::chrono::nanoseconds(std::llround(std::clamp(seconds, 0.0, 1e6) * 1e9));
}

}  // namespace

void DemandMeter::Means::Add(double seconds, double use, double memory) {
  const double keeps = std::exp(-seconds / memory);
  time = keeps * time + seconds;
  used = keeps * used + use;
}

void DemandMeter::Look(MonotonicTime now, const Server& server) {
  const Mark mark{.at = now, .used = server.used, .answered = server.answered};
  if (busy_since_ && now - busy_since_->at <= kLongestStretch) {
    busy_.Add(Seconds(now - busy_since_->at), std::max(0.0, Seconds(mark.used - busy_since_->used)), kLong);
  }
  busy_since_ = server.pending > 0 ? std::optional(mark) : std::nullopt;
  if (!begin_) {
    begin_ = mark;
    return;
  }
  const std::chrono::nanoseconds length = now - begin_->at;
  if (length < kStretch) return;
  const double seconds = Seconds(length);
  const double use = std::max(0.0, Seconds(mark.used - begin_->used));
  const auto count = static_cast<double>(mark.answered - begin_->answered);
  begin_ = mark;
  if (length > kLongestStretch) return;
  if (seen_ > 0) {
    const double expected = long_since_.rate() * seconds;
    const double keeps = std::exp(-seconds / kLong);
    squares_ = keeps * squares_ + (use - expected) * (use - expected);
    expected_ = keeps * expected_ + expected;
  }
  lately_.Add(seconds, use, kLately);
  long_since_.Add(seconds, use, kLong);
  seen_ += seconds;
  if (count > 0) {
    const double keeps = std::exp(-count / kRequests);
    each_used_ = keeps * each_used_ + use;
    each_count_ = keeps * each_count_ + count;
  }
}

std::optional<RequestDemand> DemandMeter::demand() const {
  if (seen_ < kEnough) return std::nullopt;
  const double each = each_count_ < kFewRequests ? kUnknownRequest : each_used_ / each_count_;
  // Were requests to come by chance, each by itself, this would be what each uses; it is more when they come together.
  const double uneven = expected_ > 0 ? squares_ / expected_ : 0;
  return RequestDemand{.cores = std::max(lately_.rate(), long_since_.rate()),
                       .busy = busy_.time >= kEnoughBusy ? busy_.rate() : 0,
                       .each = Time(each),
                       .uneven = Time(std::max(uneven, each))};
}

}  // namespace tandem
