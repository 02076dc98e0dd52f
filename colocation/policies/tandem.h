#pragma once

#include "colocation/policy.h"

namespace tandem {

// Trainers are of the kernel's idle class, which puts requests first on every core within microseconds. Operators that
// slow requests down even so, on other cores, do not begin while there are requests. Under a CPU
// limit that is not enough: training would use up the time of a period, and the requests that come after would stand
// still with it. So training waits for the moment from which the period's time does not run out any more: when as much
// is left as all threads together could use until the next period or, while no request is under way, as much as
// training does use, but never less than requests could. Then it may have all of it. Until that moment every bit is
// there for requests; after it nothing is lost, because what is left at the end of a period is.
class TandemPolicy final : public ColocationPolicy {
 public:
  // Use is counted when a thread leaves its core, or a timer ticks. So much more for each thread, but never more than
  // an eighth of the quota, must be left when training begins.
  static constexpr std::chrono::microseconds kUncounted{1'000};
  // How often is looked again, at most: while requests use the time that training waits for, and while training runs,
  // in case that more was used than could be seen.
  static constexpr std::chrono::microseconds kShortestLook{1'000};
  static constexpr std::chrono::microseconds kRunningLook{4'000};

  [[nodiscard]] std::string_view name() const override { return "tandem"; }
  [[nodiscard]] TrainerClass trainer_class() const override { return TrainerClass::kIdle; }
  [[nodiscard]] bool heeds_quotas() const override { return true; }
  [[nodiscard]] GatedOps gated_ops() const override { return GatedOps::kHeavyAsMeasured; }
  [[nodiscard]] ColocationDecision Decide(const ColocationSnapshot& snapshot) const override;
};

}  // namespace tandem
