#include "colocation/acknowledgement_times.h"

#include <algorithm>
#include <bit>

namespace tandem {

std::size_t AcknowledgementTimes::BucketOf(std::chrono::nanoseconds time) {
  const auto microseconds = static_cast<std::uint64_t>(time.count()) / 1000;
  return std::min<std::size_t>(std::bit_width(microseconds), kBuckets - 1);
}

void AcknowledgementTimes::Add(std::chrono::nanoseconds time) {
  ++counts[BucketOf(time)];
  sum += time;
}

AcknowledgementTimes& AcknowledgementTimes::operator+=(const AcknowledgementTimes& other) {
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += other.counts[i];
  sum += other.sum;
  return *this;
}

bool AcknowledgementTimes::CanFollow(const AcknowledgementTimes& before, std::uint64_t orders,
                                     std::chrono::nanoseconds lived) const {
  if (sum < before.sum || sum > lived) return false;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    // What is left of the orders is compared, since a sum of garbage may wrap.
    if (counts[i] < before.counts[i] || counts[i] > orders) return false;
    orders -= counts[i];
  }
  return true;
}

}  // namespace tandem
