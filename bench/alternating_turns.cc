#include "bench/alternating_turns.h"

#include <cstddef>

namespace tandem::bench {

std::vector<TurnCost> CostsOfEveryOther(std::span<const double> turns) {
  std::vector<TurnCost> costs;
  for (std::size_t i = 1; i + 1 < turns.size(); i += 2) {
    const double without = (turns[i - 1] + turns[i + 1]) / 2;
    costs.push_back({.without = without, .more = turns[i] - without});
  }
  return costs;
}

}  // namespace tandem::bench
