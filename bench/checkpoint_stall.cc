#include "bench/checkpoint_stall.h"

#include <cstddef>

namespace tandem::bench {

std::vector<CheckpointStall> CheckpointStalls(std::span<const double> turns) {
  std::vector<CheckpointStall> stalls;
  for (std::size_t i = 1; i + 1 < turns.size(); i += 2) {
    const double without = (turns[i - 1] + turns[i + 1]) / 2;
    stalls.push_back({.without = without, .stall = turns[i] - without});
  }
  return stalls;
}

}  // namespace tandem::bench
