#include "bench/laps.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "api/base/duration.h"

namespace tandem::bench {
namespace {

double AllRates(const TrainingSpan& span) {
  return std::accumulate(span.rates.begin(), span.rates.end(), 0.0);
}

}  // namespace

std::vector<std::vector<std::size_t>> DrawOrders(std::size_t sides, std::size_t laps, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::size_t> order(sides);
  std::ranges::iota(order, std::size_t{0});
  std::vector<std::vector<std::size_t>> orders;
  for (std::size_t lap = 0; lap < laps; ++lap) {
    std::ranges::shuffle(order, random);
    orders.push_back(order);
  }
  return orders;
}

Figures Pool(std::span<const Lap> laps) {
  loadgen::LatencyHistogram latency;
  double seconds = 0;
  double steps = 0;
  double cpu = 0;
  double periods = 0;
  double throttled = 0;
  Figures figures;
  for (const Lap& lap : laps) {
    latency.Merge(lap.latency);
    seconds += lap.span.seconds;
    steps += AllRates(lap.span) * lap.span.seconds;
    cpu += lap.span.cores * lap.span.seconds;
    periods += lap.span.periods;
    throttled += lap.span.throttled;
    if (lap.span.acknowledged) figures["acknowledged"] = std::max(figures["acknowledged"], *lap.span.acknowledged);
  }
  figures["p50"] = Seconds(latency.Percentile(50));
  figures["p99"] = Seconds(latency.Percentile(99));
  figures["rate"] = steps / seconds;
  figures["cores"] = cpu / seconds;
  figures["throttled"] = periods > 0 ? throttled / periods : 0;
  return figures;
}

std::vector<std::span<const Lap>> Heaps(std::span<const Lap> laps, std::size_t size) {
  std::vector<std::span<const Lap>> heaps;
  const std::size_t count = std::max<std::size_t>(laps.size() / size, 1);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t first = i * size;
    heaps.push_back(laps.subspan(first, i + 1 == count ? laps.size() - first : size));
  }
  return heaps;
}

PolicyRounds ByLap(std::span<const Lap> laps, std::span<const double> whole) {
  PolicyRounds rounds;
  for (std::size_t i = 0; i < laps.size(); ++i) {
    rounds.p99.push_back(Seconds(laps[i].latency.Percentile(99)));
    rounds.kept.push_back(AllRates(laps[i].span) / whole[i]);
  }
  return rounds;
}

}  // namespace tandem::bench
