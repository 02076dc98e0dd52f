#include "runtimes/training/learning/schedule.h"

#include <gtest/gtest.h>

namespace tandem::training {
namespace {

TEST(Schedule, IsOneWithoutAnySchedule) {
  EXPECT_EQ(LearningRateFactor({}, 0, 10), 1);
  EXPECT_EQ(LearningRateFactor({}, 9, 10), 1);
}

TEST(Schedule, WarmupRisesInALineAndReachesTheRateWithItsLastStep) {
  const ScheduleSpec schedule{.warmup_steps = 4};
  EXPECT_DOUBLE_EQ(LearningRateFactor(schedule, 0, 100), 0.25);
  EXPECT_DOUBLE_EQ(LearningRateFactor(schedule, 1, 100), 0.5);
  EXPECT_DOUBLE_EQ(LearningRateFactor(schedule, 3, 100), 1);
  EXPECT_DOUBLE_EQ(LearningRateFactor(schedule, 50, 100), 1);
}

TEST(Schedule, CosineFallsFromOneToTheFloor) {
  const ScheduleSpec schedule{.kind = ScheduleKind::kCosine, .warmup_steps = 10, .floor = 0.1};
  EXPECT_DOUBLE_EQ(LearningRateFactor(schedule, 10, 110), 1);
  EXPECT_NEAR(LearningRateFactor(schedule, 60, 110), 0.55, 1e-12);
  EXPECT_NEAR(LearningRateFactor(schedule, 110, 110), 0.1, 1e-12);
  EXPECT_NEAR(LearningRateFactor(schedule, 500, 110), 0.1, 1e-12) << "it must not rise again";
}

TEST(Schedule, StepMultipliesAfterEachInterval) {
  const ScheduleSpec schedule{.kind = ScheduleKind::kStep, .every_steps = 5, .factor = 0.5};
  EXPECT_DOUBLE_EQ(LearningRateFactor(schedule, 4, 100), 1);
  EXPECT_DOUBLE_EQ(LearningRateFactor(schedule, 5, 100), 0.5);
  EXPECT_DOUBLE_EQ(LearningRateFactor(schedule, 14, 100), 0.25);
}

}  // namespace
}  // namespace tandem::training
