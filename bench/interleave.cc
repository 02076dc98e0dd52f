#include "bench/interleave.h"

#include <utility>

#include "api/base/format.h"

namespace tandem::bench {

Result<SeriesMap> Interleave(const BenchContext& context, std::string_view what, const std::vector<Side>& sides) {
  SeriesMap series;
  for (int round = 0; round < context.pace.rounds; ++round) {
    context.say(Format("{}: round {} of {}", what, round + 1, context.pace.rounds));
    for (std::size_t i = 0; i < sides.size(); ++i) {
      // Back and forth, so that no side always follows the same other.
      const Side& side = sides[round % 2 == 0 ? i : sides.size() - 1 - i];
      if (series.contains(side.name)) continue;
      TANDEM_TRY(context.CheckStop());
      auto figures = side.sample();
      if (!figures) {
        TANDEM_TRY(context.CheckStop());
        if (!side.may_fail) return std::unexpected(std::move(figures).error());
        series[side.name].not_run = figures.error().message;
        continue;
      }
      for (const auto& [figure, value] : *figures) series[side.name + "." + figure].samples.push_back(value);
    }
  }
  return series;
}

}  // namespace tandem::bench
