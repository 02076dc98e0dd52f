#include "colocation/queue_forecast.h"

#include <algorithm>

namespace tandem {
namespace {

using std::chrono::nanoseconds;

WorkAmount Difference(WorkAmount all, WorkAmount part) {
  return {.requests = all.requests - part.requests, .elements = all.elements - part.elements};
}

// As much of the one as is part of the other is taken out of both.
void LeaveOut(WorkAmount& work, WorkAmount& joined) {
  const WorkAmount common{.requests = std::min(work.requests, joined.requests),
                          .elements = std::min(work.elements, joined.elements)};
  work = Difference(work, common);
  joined = Difference(joined, common);
}

nanoseconds AheadInQueue(const RequestQueue& queue, const ShareLedger& shares, ForecastSpace& space, const FlowId& own,
                         const QueueKey& key, WorkAmount joined, nanoseconds enough, RunsAs as) {
  const QueueKey level{.priority = key.priority, .deadline = MonotonicTime::min(), .sequence = 0};
  const std::size_t mine = JoinFlows(space.flows, own, own.servable->batching().weight);
  space.shared.clear();
  for (const Flow& flow : space.flows) {
    const Servable& servable = *flow.id.servable;
    const WorkAmount after = queue.Behind(flow.id, key);
    WorkAmount before = Difference(queue.Behind(flow.id, level), after);
    if (flow.id == own) LeaveOut(before, joined);
    space.shared.push_back({.weight = flow.weight,
                            .behind = shares.Behind(flow.id),
                            .before = TimeOf(servable, before, as),
                            .after = TimeOf(servable, after, as)});
  }
  nanoseconds ahead = AheadByShares(space.shared, mine, enough);
  for (auto& [other, work] : queue.Before(level)) {
    WorkAmount left = work;
    if (other == own.servable) LeaveOut(left, joined);
    ahead += TimeOf(*other, left, as);
  }
  return ahead;
}

}  // namespace

Forecast ForecastInQueue(const RequestQueue& queue, const ShareLedger& shares, ForecastSpace& space,
                         const Servable& servable, std::int64_t elements, const QueueKey& key, nanoseconds enough,
                         RunsAs as) {
  Forecast forecast = ForecastRequest(servable, elements, queue.Before(key), as);
  // Until somebody is so far behind the order of urgency holds.
  if (shares.most() + forecast.ahead < kMostBehind) return forecast;
  const FlowId own = FlowOf(servable, key);
  queue.FlowsOf(key.priority, space.flows);
  if (std::ranges::all_of(space.flows, [&](const Flow& flow) { return flow.id == own; })) return forecast;
  // Neither its urgency nor its share brings it its turn in time.
  if (forecast.ahead >= enough && kMostBehind - shares.Behind(own) >= enough) return forecast;
  const nanoseconds ahead = AheadInQueue(queue, shares, space, own, key, forecast.joined, enough, as);
  forecast.ahead = ahead < enough ? ahead : std::max(ahead, forecast.ahead);
  return forecast;
}

}  // namespace tandem
