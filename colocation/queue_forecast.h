#pragma once

#include <cstdint>
#include <vector>

#include "colocation/request_queue.h"
#include "colocation/work_forecast.h"

namespace tandem {

// Memory of one forecast for the next: what it holds in between means nothing.
struct ForecastSpace {
  std::vector<Flow> flows;
  std::vector<SharedFlow> shared;
};

// The forecast for a request with a deadline that is about to wait at that place of the queue: behind what is more
// urgent, and behind what goes before it for its share; no later than its own share brings it its turn. What is ahead
// is told exactly only up to `enough`, more of which would be too late anyway.
[[nodiscard]] Forecast ForecastInQueue(const RequestQueue& queue, const ShareLedger& shares, ForecastSpace& space,
                                       const Servable& servable, std::int64_t elements, const QueueKey& key,
                                       std::chrono::nanoseconds enough, RunsAs as = {});

}  // namespace tandem
