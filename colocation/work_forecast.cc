#include "colocation/work_forecast.h"

#include <algorithm>

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
