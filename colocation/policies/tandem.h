#pragma once

#include "colocation/policy.h"

namespace tandem {

// Trainers are of the kernel's idle class, which puts requests first on every core within microseconds. Operators that
// slow requests down even so, on other cores, do not begin while there are requests for the models that they slow, and
// those that have begun stand still. Where the kernel does not yield, trainers stand still while there are requests.
// Several trainers share out the cores, and all use fewer threads while runs have some of these: with more threads than
// cores, one waits at the end of an operator for others that have none.
//
// Under a CPU limit the idle class is not enough: training would use up the time of a period, and the requests that
// come after would stand still with it. So training and requests share it out by the clock:
// - Training goes at the pace at which what is left lasts until the next period. When requests have left more, it gets
//   more threads: what is left at the end of a period is lost.
// - While requests are under way it stands still, unless what is left lasts for both. Then a request finds as much
//   as there would be had training not run, but for what could not have been used any more.
// - Where even one thread is faster than that pace, it runs only while more is left than requests are likely to need
//   until the next period: as many as may come, as was learnt, and never more than they can use.
class TandemPolicy final : public ColocationPolicy {
 public:
  // So many standard deviations more than requests use on average are kept for them, and one request more.
  static constexpr double kDeviations = 1.5;
  // Use is counted when a thread leaves its core, or a timer ticks, and when a period begins is known but about. So
  // much more, but never more than an eighth of the quota, must be left when training begins again, and half of it
  // while it runs.
  static constexpr std::chrono::microseconds kUncounted{1'000};
  // Requests that use less CPU time than this are over before training could be stopped for them.
  static constexpr std::chrono::microseconds kBrief{1'000};
  // How often is looked again, at most, and while training runs.
  static constexpr std::chrono::microseconds kShortestLook{1'000};
  static constexpr std::chrono::microseconds kRunningLook{4'000};

  [[nodiscard]] std::string_view name() const override { return "tandem"; }
  [[nodiscard]] TrainerClass trainer_class() const override { return TrainerClass::kIdle; }
  [[nodiscard]] bool heeds_quotas() const override { return true; }
  [[nodiscard]] bool heeds_requests() const override { return true; }
  [[nodiscard]] bool fits_around_runs() const override { return true; }
  [[nodiscard]] bool HearsOfRequests(const ColocationSnapshot& snapshot) const override;
  [[nodiscard]] GatedOps gated_ops() const override { return GatedOps::kHeavyAsMeasured; }
  [[nodiscard]] ColocationDecision Decide(const ColocationSnapshot& snapshot) const override;

  // What requests are likely to need in the time that comes, at most.
  [[nodiscard]] static std::chrono::nanoseconds Need(const ColocationSnapshot& snapshot, std::chrono::nanoseconds time);
};

}  // namespace tandem
