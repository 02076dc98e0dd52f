#pragma once

#include <cstdint>
#include <vector>

#include "colocation/request_queue.h"
#include "colocation/work_forecast.h"

namespace tandem {

// The forecast for a request with a deadline that is about to wait at that place of the queue: behind what is more
// urgent, and behind what goes before it for its share; no later than its own share brings it its turn. What is ahead
// is told exactly only up to `enough`, more of which would be too late anyway. Changes nothing in the queue; `flows` is
// the caller's, to be used again without allocating.
[[nodiscard]] Forecast ForecastInQueue(RequestQueue& queue, std::vector<Flow>& flows, const Servable& servable,
                                       std::int64_t elements, const QueueKey& key, std::chrono::nanoseconds enough);

}  // namespace tandem
