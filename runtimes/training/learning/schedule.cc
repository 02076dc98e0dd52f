#include "runtimes/training/learning/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tandem::training {

double LearningRateFactor(const ScheduleSpec& schedule, std::int64_t step, std::int64_t total) {
  const std::int64_t warmup = schedule.warmup_steps;
  if (step < warmup) return static_cast<double>(step + 1) / static_cast<double>(warmup);
  switch (schedule.kind) {
    case ScheduleKind::kConstant: return 1;
    case ScheduleKind::kCosine: {
      const auto length = static_cast<double>(std::max<std::int64_t>(1, total - warmup));
      const double share = std::min(1.0, static_cast<double>(step - warmup) / length);
      return schedule.floor + (1 - schedule.floor) * (1 + std::cos(std::numbers::pi * share)) / 2;
    }
    case ScheduleKind::kStep:
      return std::pow(schedule.factor, static_cast<double>(step / std::max<std::int64_t>(1, schedule.every_steps)));
  }
  return 1;
}

}  // namespace tandem::training
