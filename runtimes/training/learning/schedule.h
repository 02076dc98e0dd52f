#pragma once

#include <cstdint>

#include "api/base/training_job.h"

namespace tandem::training {

// What the optimizer's learning rate is multiplied by in a step (the first is 0) of `total`. Pure.
[[nodiscard]] double LearningRateFactor(const ScheduleSpec& schedule, std::int64_t step, std::int64_t total);

}  // namespace tandem::training
