#include "colocation/queue_forecast.h"

#include <algorithm>

namespace tandem {
namespace {

using std::chrono::nanoseconds;

WorkAmount Difference(WorkAmount all, WorkAmount part) {
  return {.requests = all.requests - part.requests, .elements = all.elements - part.elements};
}

nanoseconds AheadByShares(const RequestQueue& queue, const std::vector<Flow>& flows, const FlowId& own,
                          const QueueKey& key, nanoseconds ahead) {
  OwnFlow mine{.behind = {}, .share = own.servable->batching().weight, .before = {}};
  double all = 0;
  std::vector<LaterFlow> others;
  for (const Flow& flow : flows) {
    if (flow.id == own) {
      mine = {.behind = *flow.behind, .share = flow.weight, .before = {}};
      continue;
    }
    all += flow.weight;
    const WorkAmount work = queue.Behind(flow.id, key);
    others.push_back({.behind = *flow.behind,
                      .share = flow.weight,
                      .work = TimeOf(*flow.id.servable, work),
                      .batch = TimeOfBatch(*flow.id.servable, work)});
  }
  if (others.empty()) return ahead;
  all += mine.share;
  mine.share /= all;
  for (LaterFlow& flow : others) flow.share /= all;
  const nanoseconds by_urgency = AheadWithShares(ahead, others);
  const QueueKey level{.priority = key.priority, .deadline = MonotonicTime::min(), .sequence = 0};
  mine.before = TimeOf(*own.servable, Difference(queue.Behind(own, level), queue.Behind(own, key)));
  nanoseconds by_share = AheadByOwnShare(mine, others);
  if (by_share >= by_urgency) return by_urgency;
  for (const auto& [other, work] : queue.Before(level)) by_share += TimeOf(*other, work);
  return std::min(by_share, by_urgency);
}

}  // namespace

Forecast ForecastInQueue(RequestQueue& queue, std::vector<Flow>& flows, const Servable& servable, std::int64_t elements,
                         const QueueKey& key) {
  Forecast forecast = ForecastRequest(servable, elements, queue.Before(key));
  if (queue.size() == 0) return forecast;
  queue.FlowsOf(key.priority, flows);
  // Until then the order of urgency holds.
  const auto may_count = [&](const Flow& flow) { return *flow.behind + forecast.ahead >= kMostBehind; };
  if (flows.empty() || (forecast.ahead < kMostBehind && std::ranges::none_of(flows, may_count))) return forecast;
  const FlowId own{.servable = &servable, .level = key.priority, .patient = false};
  forecast.ahead = AheadByShares(queue, flows, own, key, forecast.ahead);
  return forecast;
}

}  // namespace tandem
