#include "profiler/op_classifier.h"

#include <algorithm>
#include <cmath>

#include "api/base/duration.h"
#include "api/base/format.h"

namespace tandem {
namespace {

// Heavy from `heavy` on, light up to `light`, and in between what it was.
OpClass WithHysteresis(double value, double heavy, double light, OpClass before) {
  if (value >= heavy) return OpClass::kHeavy;
  return value < light ? OpClass::kLight : before;
}

}  // namespace

std::chrono::nanoseconds OpClassifier::Estimate(const OpWork& work) const {
  const double seconds = std::max(work.flops / speed_.flops, static_cast<double>(work.bytes) / speed_.bytes);
  return std::chrono::nanoseconds(std::llround(std::min(seconds, 1e6) * 1e9));
}

OpVerdict OpClassifier::Classify(const OpTotals& op, const std::optional<Interference>& worst,
                                 const OpVerdict& before) const {
  const Evidence& needed = before.measured ? kStillEnough : kEnough;
  if (worst && worst->runs >= needed.runs && worst->error < needed.error) {
    const bool was_heavy = before.measured && before.op_class == OpClass::kHeavy;
    // Beyond what chance explains: else every operator would be heavy for a while.
    const bool longer = worst->certain() >= 1;
    const bool heavy = was_heavy ? worst->ratio >= kLightRatio : longer && worst->ratio >= kHeavyRatio;
    return {.op_class = heavy ? OpClass::kHeavy : OpClass::kLight,
            .measured = true,
            .reason = heavy || longer
                          ? Format("requests of {} beside it take {:.2f} times as long ({:.0f} runs)", worst->model,
                                   worst->ratio, worst->runs)
                          : Format("requests of {} beside it take no longer ({:.0f} runs)", worst->model, worst->runs)};
  }
  const OpClass since = before.measured ? OpClass::kLight : before.op_class;
  const bool seen = op.count >= kRunsOfOp;
  const std::chrono::nanoseconds time = seen ? op.typical : Estimate(op.work);
  return {.op_class = WithHysteresis(Ms(time), Ms(kHeavyTime), Ms(kLightTime), since),
          .measured = false,
          .reason = seen ? Format("takes {:.2f} ms", Ms(time))
                         : Format("takes about {:.2f} ms by its {:.3g} GFLOP and {:.3g} MB", Ms(time),
                                  op.work.flops / 1e9, static_cast<double>(op.work.bytes) / 1e6)};
}

}  // namespace tandem
