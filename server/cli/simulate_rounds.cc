#include "server/cli/simulate_rounds.h"

#include <algorithm>
#include <cstdint>

namespace tandem::cli {
namespace {

using simulation::ModelResult;
using simulation::SimulationResult;
using simulation::TrainerResult;

// Of what `get` says of each; the larger of the two in the middle of an even number.
template <typename Item, typename Get>
auto Median(const std::vector<const Item*>& items, Get get) {
  std::vector<decltype(get(*items[0]))> values;
  for (const Item* item : items) values.push_back(get(*item));
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

ModelResult CombineModel(const std::vector<const ModelResult*>& rounds) {
  ModelResult combined{.name = rounds[0]->name};
  std::vector<const ModelResult*> answered;
  for (const ModelResult* round : rounds) {
    for (const auto count : {&ModelResult::offered, &ModelResult::answered, &ModelResult::rejected,
                             &ModelResult::unfinished, &ModelResult::due, &ModelResult::in_time}) {
      combined.*count += round->*count;
    }
    if (round->answered > 0) answered.push_back(round);
  }
  if (answered.empty()) return combined;
  for (const auto time :
       {&ModelResult::mean, &ModelResult::p50, &ModelResult::p90, &ModelResult::p99, &ModelResult::max}) {
    combined.*time = Median(answered, [time](const ModelResult& model) { return model.*time; });
  }
  return combined;
}

TrainerResult CombineTrainer(const std::vector<const TrainerResult*>& rounds) {
  TrainerResult combined{.name = rounds[0]->name};
  combined.iterations_per_second =
      Median(rounds, [](const TrainerResult& trainer) { return trainer.iterations_per_second; });
  for (std::size_t i = 0; i < combined.held.size(); ++i) {
    for (const TrainerResult* round : rounds) combined.held[i] += round->held[i];
    combined.held[i] /= static_cast<std::int64_t>(rounds.size());
  }
  return combined;
}

// The one at that place in every round.
template <typename Item>
std::vector<const Item*> Each(const std::vector<SimulationResult>& rounds, std::vector<Item> SimulationResult::* list,
                              std::size_t place) {
  std::vector<const Item*> items;
  for (const SimulationResult& round : rounds) items.push_back(&(round.*list)[place]);
  return items;
}

}  // namespace

SimulationResult CombineRounds(const std::vector<SimulationResult>& rounds) {
  SimulationResult combined{.time = rounds[0].time, .capacity = rounds[0].capacity};
  for (std::size_t i = 0; i < rounds[0].models.size(); ++i) {
    combined.models.push_back(CombineModel(Each(rounds, &SimulationResult::models, i)));
  }
  for (std::size_t i = 0; i < rounds[0].trainers.size(); ++i) {
    combined.trainers.push_back(CombineTrainer(Each(rounds, &SimulationResult::trainers, i)));
  }
  const auto count = static_cast<double>(rounds.size());
  for (const SimulationResult& round : rounds) {
    combined.used_by_requests += round.used_by_requests / count;
    combined.used_by_training += round.used_by_training / count;
    combined.most_used_in_a_period = std::max(combined.most_used_in_a_period, round.most_used_in_a_period);
    combined.periods += round.periods;
    combined.throttled_periods += round.throttled_periods;
    combined.events += round.events;
  }
  return combined;
}

}  // namespace tandem::cli
