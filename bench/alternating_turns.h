#pragma once

#include <span>
#include <vector>

namespace tandem::bench {

// What something costs that only every other turn has, in seconds.
struct TurnCost {
  double without = 0;  // A turn without it: the mean of the one before and the one after.
  double more = 0;     // How much longer the turn with it took; below zero where that is less than chance.
};

// Of turns of one process with the same number of steps, of which the second, fourth and so on have it. Each is
// compared with its neighbours, so that a process that grows slower or faster is not mistaken for a cost; a last one
// without a neighbour after it is left out.
[[nodiscard]] std::vector<TurnCost> CostsOfEveryOther(std::span<const double> turns);

}  // namespace tandem::bench
