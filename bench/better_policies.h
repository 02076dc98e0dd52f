#pragma once

#include <span>
#include <vector>

namespace tandem::bench {

// What one policy came to in every round; the same round has the same arrivals for all.
struct PolicyRounds {
  std::vector<double> p99;
  std::vector<double> kept;  // Of training.
};

// How many of the others are better than the first policy in both: a lower p99 and more training. By rounds: both in
// the same round, in more than half of the rounds. By medians: of all rounds, each figure for itself; of two that are
// equal one is then often better by chance. Pure; every policy has as many rounds as the first.
[[nodiscard]] int BetterByRounds(std::span<const PolicyRounds> policies);
[[nodiscard]] int BetterByMedians(std::span<const PolicyRounds> policies);

}  // namespace tandem::bench
