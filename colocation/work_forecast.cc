#include "colocation/work_forecast.h"

#include <algorithm>
#include <cmath>

namespace tandem {
namespace {

using std::chrono::nanoseconds;

nanoseconds Typical(const Servable& servable, std::int64_t elements) {
  const auto run = servable.latency().Predict(elements);
  return run ? run->typical : nanoseconds(0);
}

// How many elements one run may have; 1 when requests are not joined.
std::int64_t MostTogether(const BatchSettings& settings) {
  return settings.dynamic ? std::max<std::int64_t>(1, settings.max_batch_size) : 1;
}

// Waiting requests of one model, as they will be run: so many elements together, as requests are not split.
std::int64_t Together(const Servable& servable, WorkAmount work) {
  const std::int64_t request = std::max<std::int64_t>(1, work.elements / work.requests);
  return std::max(request, MostTogether(servable.batching()) / request * request);
}

}  // namespace

nanoseconds TimeOfBatch(const Servable& servable, WorkAmount work) {
  if (work.requests == 0) return nanoseconds(0);
  return Typical(servable, std::min(work.elements, Together(servable, work)));
}

nanoseconds TimeOf(const Servable& servable, WorkAmount work) {
  if (work.requests == 0) return nanoseconds(0);
  const std::int64_t together = Together(servable, work);
  const std::int64_t rest = work.elements % together;
  const nanoseconds last = rest == 0 ? nanoseconds(0) : Typical(servable, rest);
  return work.elements / together * Typical(servable, together) + last;
}

nanoseconds AheadWithShares(nanoseconds ahead, std::span<const LaterFlow> later) {
  // What the others take puts the request off, and they have a share of that time, too: a few rounds come close.
  constexpr int kRounds = 6;
  nanoseconds total = ahead;
  for (int round = 0; round < kRounds; ++round) {
    nanoseconds next = ahead;
    for (const LaterFlow& flow : later) {
      const double due = static_cast<double>(total.count()) * flow.share;
      const nanoseconds owed = flow.behind + nanoseconds(std::llround(due)) - kMostBehind;
      if (owed >= nanoseconds(0)) next += std::min(flow.work, std::max(owed, flow.batch));
    }
    if (next == total) break;
    total = next;
  }
  return total;
}

nanoseconds AheadByOwnShare(const OwnFlow& own, std::span<const LaterFlow> others) {
  const nanoseconds wait = std::max(nanoseconds(0), kMostBehind - own.behind) + own.before;
  nanoseconds total(std::llround(static_cast<double>(wait.count()) / own.share));
  // Each may have a run begun before.
  for (const LaterFlow& flow : others) total += flow.batch;
  return total;
}

Forecast ForecastRequest(const Servable& servable, std::int64_t elements,
                         std::span<const std::pair<const Servable*, WorkAmount>> before) {
  Forecast forecast;
  std::int64_t own = elements;
  for (const auto& [other, work] : before) {
    const std::int64_t together = Together(*other, work);
    if (work.elements >= together) forecast.ahead += work.elements / together * Typical(*other, together);
    const std::int64_t rest = work.elements % together;
    if (rest == 0) continue;
    if (other == &servable && rest + elements <= MostTogether(servable.batching())) {
      own = rest + elements;
    } else {
      forecast.ahead += Typical(*other, rest);
    }
  }
  forecast.run = servable.latency().Predict(own);
  return forecast;
}

nanoseconds UntilTurn(nanoseconds ahead, std::span<nanoseconds> rests) {
  std::ranges::sort(rests);
  // Those that are free sooner take up the work until it is level with the rest of the next.
  nanoseconds sum = ahead;
  for (std::size_t i = 0; i < rests.size(); ++i) {
    sum += rests[i];
    const nanoseconds level = sum / static_cast<std::int64_t>(i + 1);
    if (i + 1 == rests.size() || level <= rests[i + 1]) return level;
  }
  return sum;
}

}  // namespace tandem
