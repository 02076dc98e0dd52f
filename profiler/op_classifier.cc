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

std::string OpPairing::Why() const {
  return heavy() || seen.longer()
             ? Format("requests of {} beside it take {:.2f} times as long ({:.0f} runs)", seen.model, seen.ratio,
                      seen.runs)
             : Format("requests of {} beside it take no longer ({:.0f} runs)", seen.model, seen.runs);
}

std::chrono::nanoseconds OpClassifier::Estimate(const OpWork& work) const {
  const double seconds = std::max(work.flops / speed_.flops, static_cast<double>(work.bytes) / speed_.bytes);
  return std::chrono::nanoseconds(std::llround(std::min(seconds, 1e6) * 1e9));
}

OpVerdict OpClassifier::ByTime(const OpTotals& op, OpClass before) const {
  const bool seen = op.count >= kRunsOfOp;
  const std::chrono::nanoseconds time = seen ? op.typical : Estimate(op.work);
  return {.op_class = WithHysteresis(Ms(time), Ms(kHeavyTime), Ms(kLightTime), before),
          .measured = false,
          .reason = seen ? Format("takes {:.2f} ms", Ms(time))
                         : Format("takes about {:.2f} ms by its {:.3g} GFLOP and {:.3g} MB", Ms(time),
                                  op.work.flops / 1e9, static_cast<double>(op.work.bytes) / 1e6)};
}

std::optional<OpClass> OpClassifier::Beside(const Interference& seen, std::optional<OpClass> before) {
  const Evidence& needed = before ? kStillEnough : kEnough;
  if (seen.runs < needed.runs || seen.error >= needed.error) return std::nullopt;
  // What becomes heavy is beyond what chance explains: else every operator would be heavy for a while.
  const bool heavy = before == OpClass::kHeavy ? seen.ratio >= kLightRatio : seen.longer() && seen.ratio >= kHeavyRatio;
  return heavy ? OpClass::kHeavy : OpClass::kLight;
}

const OpPairing* OpClassifier::Heaviest(std::span<const OpPairing> pairings) {
  const auto heaviest = std::ranges::max_element(pairings, {}, &OpPairing::weight);
  return heaviest == pairings.end() || !heaviest->op_class ? nullptr : &*heaviest;
}

OpVerdict OpClassifier::Altogether(std::span<const OpPairing> pairings, const OpVerdict& by_time) {
  const OpPairing* const heaviest = Heaviest(pairings);
  if (heaviest == nullptr) return by_time;
  return {.op_class = *heaviest->op_class, .measured = true, .reason = heaviest->Why()};
}

}  // namespace tandem
