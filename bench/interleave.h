#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/result.h"
#include "bench/context.h"
#include "bench/measurement.h"

namespace tandem::bench {

// What one window of one side came to, by name: "p50", "rate".
using Figures = std::map<std::string, double>;

// One side of a comparison.
struct Side {
  std::string name;
  std::function<Result<Figures>()> sample;
  // Whose failure is its own affair: the side is given up, with the reason, and the others go on.
  bool may_fail = false;
};

// Takes a sample of each side in every round, back and forth. The series of a figure is called "side.figure"; that of a
// side that was given up has the reason under "side" alone.
[[nodiscard]] Result<SeriesMap> Interleave(const BenchContext& context, std::string_view what,
                                           const std::vector<Side>& sides);

}  // namespace tandem::bench
