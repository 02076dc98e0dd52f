#include "colocation/work_forecast.h"

#include <algorithm>

namespace tandem {
namespace {

using std::chrono::nanoseconds;

RunWidth WidthOf(const Servable& servable, RunsAs as) {
  return servable.can_be_narrow() ? as.width : RunWidth::kAll;
}

nanoseconds Typical(const Servable& servable, std::int64_t elements, RunsAs as) {
  const RunWidth width = WidthOf(servable, as);
  const auto run = servable.Predict(elements, width);
  if (!run) return nanoseconds(0);
  return width == RunWidth::kOne ? run->typical / as.threads : run->typical;
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

nanoseconds TimeOf(const Servable& servable, WorkAmount work, RunsAs as) {
  if (work.requests == 0) return nanoseconds(0);
  const std::int64_t together = Together(servable, work);
  const std::int64_t rest = work.elements % together;
  const nanoseconds last = rest == 0 ? nanoseconds(0) : Typical(servable, rest, as);
  return work.elements / together * Typical(servable, together, as) + last;
}

std::int64_t RunsOf(const Servable& servable, WorkAmount work) {
  if (work.requests == 0) return 0;
  const std::int64_t together = Together(servable, work);
  return (work.elements + together - 1) / together;
}

nanoseconds AheadByShares(std::span<SharedFlow> flows, std::size_t own, nanoseconds enough) {
  const int steps = static_cast<int>(std::clamp<std::size_t>(1024 / flows.size(), 8, 64));
  constexpr nanoseconds kShortest = std::chrono::milliseconds(1);
  nanoseconds urgent{0};
  for (const SharedFlow& flow : flows) urgent += flow.before;
  const nanoseconds step = std::max(kShortest, (urgent + kMostBehind) / steps);
  nanoseconds ahead{0};
  // Shares put the request off by no more than all that waits; when that is too much to be played through, it is late
  // anyway.
  for (int i = 0; i < 4 * steps && ahead < enough; ++i) {
    const SharedFlow& mine = flows[own];
    const auto waits = [&](const SharedFlow& flow) {
      return &flow == &mine || flow.before + flow.after > nanoseconds(0);
    };
    SharedFlow* next = nullptr;
    double weights = 0;
    for (SharedFlow& flow : flows) {
      if (!waits(flow)) continue;
      weights += flow.weight;
      if (flow.behind >= kMostBehind && (next == nullptr || flow.behind > next->behind)) next = &flow;
    }
    // In which order the more urgent ones of several flows come is not known: about in turns.
    if (next == nullptr) {
      next = &*std::ranges::max_element(flows, {}, &SharedFlow::before);
      if (next->before == nanoseconds(0)) return ahead;
    }
    nanoseconds& work = next->before > nanoseconds(0) || next == &mine ? next->before : next->after;
    if (work == nanoseconds(0)) return ahead;
    const nanoseconds took = std::min(step, work);
    const double each = static_cast<double>(took.count()) / weights;
    for (SharedFlow& flow : flows) {
      if (!waits(flow)) continue;
      flow.behind += nanoseconds(static_cast<std::int64_t>(each * flow.weight));
      if (&flow == next) flow.behind = std::max(nanoseconds(0), flow.behind - took);
    }
    work -= took;
    ahead += took;
  }
  return ahead;
}

Forecast ForecastRequest(const Servable& servable, std::int64_t elements,
                         std::span<const std::pair<const Servable*, WorkAmount>> before, RunsAs as) {
  Forecast forecast;
  std::int64_t own = elements;
  for (const auto& [other, work] : before) {
    const std::int64_t together = Together(*other, work);
    if (work.elements >= together) forecast.ahead += work.elements / together * Typical(*other, together, as);
    const std::int64_t rest = work.elements % together;
    if (rest == 0) continue;
    if (other == &servable && rest + elements <= MostTogether(servable.batching())) {
      own = rest + elements;
      forecast.joined = {
          .requests = work.requests - work.elements / together * together * work.requests / work.elements,
          .elements = rest};
    } else {
      forecast.ahead += Typical(*other, rest, as);
    }
  }
  forecast.run = servable.Predict(own, WidthOf(servable, as));
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
