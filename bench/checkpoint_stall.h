#pragma once

#include <span>
#include <vector>

namespace tandem::bench {

// What one checkpoint costs, in seconds.
struct CheckpointStall {
  double without = 0;  // A turn without a checkpoint: the mean of the one before and the one after.
  double stall = 0;    // How much longer the turn with it took; below zero where that is less than chance.
};

// Of turns of one process with the same number of steps, of which the second, fourth and so on have a checkpoint in
// them. Each is compared with its neighbours, so that a process that grows slower or faster is not mistaken for a
// stall; a last one without a neighbour after it is left out.
[[nodiscard]] std::vector<CheckpointStall> CheckpointStalls(std::span<const double> turns);

}  // namespace tandem::bench
