#include "colocation/queue_forecast.h"

#include <algorithm>

namespace tandem {
namespace {

using std::chrono::nanoseconds;

WorkAmount Difference(WorkAmount all, WorkAmount part) {
  return {.requests = all.requests - part.requests, .elements = all.elements - part.elements};
}

nanoseconds AheadInQueue(const RequestQueue& queue, const std::vector<Flow>& flows, const FlowId& own,
                         const QueueKey& key, nanoseconds enough) {
  const QueueKey level{.priority = key.priority, .deadline = MonotonicTime::min(), .sequence = 0};
  std::vector<SharedFlow> shared = {{.weight = own.servable->batching().weight}};
  for (const Flow& flow : flows) {
    const Servable& servable = *flow.id.servable;
    const WorkAmount after = queue.Behind(flow.id, key);
    const WorkAmount before = Difference(queue.Behind(flow.id, level), after);
    SharedFlow& entry = flow.id == own ? shared.front() : shared.emplace_back();
    entry = {.weight = flow.weight,
             .behind = *flow.behind,
             .before = TimeOf(servable, before),
             .after = TimeOf(servable, after)};
  }
  nanoseconds ahead = AheadByShares(shared, 0, enough);
  for (const auto& [other, work] : queue.Before(level)) ahead += TimeOf(*other, work);
  return ahead;
}

}  // namespace

Forecast ForecastInQueue(RequestQueue& queue, std::vector<Flow>& flows, const Servable& servable, std::int64_t elements,
                         const QueueKey& key, nanoseconds enough) {
  Forecast forecast = ForecastRequest(servable, elements, queue.Before(key));
  if (queue.size() == 0) return forecast;
  queue.FlowsOf(key.priority, flows);
  // Until then the order of urgency holds.
  const auto may_count = [&](const Flow& flow) { return *flow.behind + forecast.ahead >= kMostBehind; };
  if (flows.empty() || (forecast.ahead < kMostBehind && std::ranges::none_of(flows, may_count))) return forecast;
  const FlowId own{.servable = &servable, .level = key.priority, .patient = false};
  const auto mine = std::ranges::find(flows, own, &Flow::id);
  const nanoseconds behind = mine == flows.end() ? nanoseconds(0) : *mine->behind;
  // Neither its urgency nor its share brings it its turn in time.
  if (forecast.ahead >= enough && kMostBehind - behind >= enough) return forecast;
  const nanoseconds ahead = AheadInQueue(queue, flows, own, key, enough);
  forecast.ahead = ahead < enough ? ahead : std::max(ahead, forecast.ahead);
  return forecast;
}

}  // namespace tandem
