#include "colocation/simulation/request_tally.h"

#include <algorithm>
#include <cmath>

namespace tandem::simulation {
namespace {

// The smallest that so large a share does not exceed; moves what is in the list.
std::chrono::nanoseconds Quantile(std::vector<std::int64_t>& values, double share) {
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(std::max<std::size_t>(rank, 1) - 1);
  std::nth_element(values.begin(), at, values.end());
  return std::chrono::nanoseconds(*at);
}

}  // namespace

RequestTally::RequestTally(Time from, double expected) : from_(from) {
  latencies_.reserve(static_cast<std::size_t>(expected + 6 * std::sqrt(expected) + 16));
}

void RequestTally::Rejected(const Request& request) {
  if (!Counts(request)) return;
  ++result_.rejected;
  if (request.deadline != kNever) ++result_.due;
}

void RequestTally::Answered(const Request& request, Time at) {
  if (!Counts(request)) return;
  ++result_.answered;
  latencies_.push_back(at - request.arrival);
  if (request.deadline == kNever) return;
  ++result_.due;
  if (at <= request.deadline) ++result_.in_time;
}

void RequestTally::Unfinished(const Request& request, Time end) {
  if (!Counts(request)) return;
  ++result_.unfinished;
  if (request.deadline <= end) ++result_.due;
}

ModelResult RequestTally::Finish() {
  if (!latencies_.empty()) {
    double sum = 0;
    for (const std::int64_t latency : latencies_) sum += static_cast<double>(latency);
    result_.mean = std::chrono::nanoseconds(std::llround(sum / static_cast<double>(latencies_.size())));
    result_.p50 = Quantile(latencies_, 0.5);
    result_.p90 = Quantile(latencies_, 0.9);
    result_.p99 = Quantile(latencies_, 0.99);
    result_.max = Quantile(latencies_, 1);
  }
  return result_;
}

}  // namespace tandem::simulation
