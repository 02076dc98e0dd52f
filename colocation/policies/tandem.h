#pragma once

#include "colocation/policy.h"

namespace tandem {

// Trainers are of the kernel's idle class, which puts requests first on every core within microseconds. Operators that
// slow requests down even so, on other cores, do not begin while there are requests. Under a CPU limit that is not
// enough: training would use up the time of a period, and the requests that come after would stand still with it. So
// training runs only while more is left of the period's time than requests are likely to need until the next one: those
// that are under way, and as many more as may come. What that is, is learnt; until then, as much as all threads could
// use. When what is left lasts for more threads, training gets them, because what is left at the end of a period is
// lost.
class TandemPolicy final : public ColocationPolicy {
 public:
  // So many standard deviations more than requests use on average are kept for them, and one request more.
  static constexpr double kDeviations = 1.5;
  // Use is counted when a thread leaves its core, or a timer ticks. So much more, but never more than an eighth of the
  // quota, must be left when training begins again.
  static constexpr std::chrono::microseconds kUncounted{1'000};
  // How often is looked again, at most, and while training runs.
  static constexpr std::chrono::microseconds kShortestLook{1'000};
  static constexpr std::chrono::microseconds kRunningLook{4'000};

  [[nodiscard]] std::string_view name() const override { return "tandem"; }
  [[nodiscard]] TrainerClass trainer_class() const override { return TrainerClass::kIdle; }
  [[nodiscard]] bool heeds_quotas() const override { return true; }
  [[nodiscard]] GatedOps gated_ops() const override { return GatedOps::kHeavyAsMeasured; }
  [[nodiscard]] ColocationDecision Decide(const ColocationSnapshot& snapshot) const override;

  // What requests are likely to need in the time that comes, at most.
  [[nodiscard]] static std::chrono::nanoseconds Need(const ColocationSnapshot& snapshot, std::chrono::nanoseconds time);
};

}  // namespace tandem
