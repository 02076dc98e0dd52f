#include "bench/recovery.h"

#include <algorithm>
#include <cstddef>

namespace tandem::bench {

double InTimeUntil(const std::vector<LaterRequest>& requests, double seconds) {
  std::size_t due = 0;
  std::size_t missed = 0;
  for (const LaterRequest& request : requests) {
    if (request.due >= seconds) continue;
    ++due;
    if (request.missed) ++missed;
  }
  return due == 0 ? 1 : 1 - static_cast<double>(missed) / static_cast<double>(due);
}

double LastMissed(const std::vector<LaterRequest>& requests) {
  double last = 0;
  for (const LaterRequest& request : requests) {
    if (request.missed) last = std::max(last, request.due);
  }
  return last;
}

double RecoveredAfter(std::vector<LaterRequest> requests, double share) {
  std::ranges::sort(requests, {}, &LaterRequest::due);
  std::size_t first = requests.size();  // Of those that count.
  std::size_t missed = 0;
  for (std::size_t i = requests.size(); i-- > 0;) {
    if (requests[i].missed) ++missed;
    const auto counted = static_cast<double>(requests.size() - i);
    if (static_cast<double>(missed) <= (1 - share) * counted) first = i;
  }
  // The one before was missed: it would count, too, otherwise.
  return first == 0 ? 0 : requests[first - 1].due;
}

}  // namespace tandem::bench
