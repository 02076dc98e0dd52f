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

nanoseconds WholeBatches(const Servable& servable, std::int64_t elements, std::int64_t most) {
  return elements < most ? nanoseconds(0) : elements / most * Typical(servable, most);
}

nanoseconds All(const Servable& servable, WorkAmount work) {
  const std::int64_t most = MostTogether(servable.batching());
  if (most == 1) return work.requests * Typical(servable, std::max<std::int64_t>(1, work.elements / work.requests));
  const std::int64_t rest = work.elements % most;
  return WholeBatches(servable, work.elements, most) + (rest > 0 ? Typical(servable, rest) : nanoseconds(0));
}

}  // namespace

Forecast ForecastRequest(const Servable& servable, std::int64_t elements,
                         std::span<const std::pair<const Servable*, WorkAmount>> before) {
  Forecast forecast;
  std::int64_t together = elements;
  for (const auto& [other, work] : before) {
    const std::int64_t most = MostTogether(other->batching());
    if (other != &servable || most == 1) {
      forecast.ahead += All(*other, work);
      continue;
    }
    forecast.ahead += WholeBatches(*other, work.elements, most);
    together = std::min(most, work.elements % most + elements);
  }
  forecast.run = servable.latency().Predict(together);
  return forecast;
}

}  // namespace tandem
