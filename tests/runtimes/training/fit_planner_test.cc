// What a planner promises of any step: it stays within the bound, and more memory never makes it slower.

#include "runtimes/training/fit/fit_planner.h"

#include <algorithm>
#include <optional>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace tandem::training {
namespace {

// As a group of convolutions is: half of what it holds can be had back cheaply.
FitGroup Group(std::size_t index, std::int64_t bytes, double seconds) {
  return {.begin = 2 * index,
          .end = 2 * index + 2,
          .held = {bytes, bytes / 2, bytes / 8},
          .seconds = {0, seconds / 10, seconds},
          .entry = index == 0 ? 0 : bytes / 8,
          .forward = bytes / 4,
          .backward = bytes / 4,
          .gradients = bytes / 8};
}

FitProblem Chain(std::size_t groups, std::int64_t bytes, double seconds) {
  FitProblem problem;
  for (std::size_t i = 0; i < groups; ++i) problem.groups.push_back(Group(i, bytes, seconds));
  problem.step_seconds = 3 * seconds * static_cast<double>(groups);
  return problem;
}

FitProblem AnyProblem() {
  FitProblem problem;
  const auto groups = *rc::gen::inRange<std::size_t>(1, 24);
  for (std::size_t i = 0; i < groups; ++i) {
    const auto bytes = *rc::gen::inRange<std::int64_t>(8, 10'000);
    FitGroup group = Group(i, bytes, 0.001 * *rc::gen::inRange(1, 1000));
    group.backward = *rc::gen::inRange<std::int64_t>(-bytes / 2, bytes);
    group.gradients = *rc::gen::inRange<std::int64_t>(-bytes, bytes);
    problem.step_seconds += 3 * group.seconds[2];
    problem.groups.push_back(group);
  }
  return problem;
}

TEST(FitPlanner, WithMemoryForAllNothingIsComputedAgain) {
  const auto choice = ChoosePlan(Chain(10, 1000, 1), 1'000'000);
  ASSERT_TRUE(choice);
  EXPECT_TRUE(choice->plan.segments.empty());
  EXPECT_EQ(choice->added_seconds, 0);
}

TEST(FitPlanner, WhatIsCheapIsComputedAgainFirst) {
  const auto choice = ChoosePlan(Chain(16, 1000, 1), 11'000);
  ASSERT_TRUE(choice);
  ASSERT_FALSE(choice->plan.segments.empty());
  for (const FitSegment& segment : choice->plan.segments) EXPECT_EQ(segment.retention, Retention::kCostly);
  EXPECT_LT(choice->plan.segments.size(), 16U) << "no more than need be";
  EXPECT_EQ(choice->plan.segments.front().begin, 0U) << "what is needed first again is held";
}

TEST(FitPlanner, WhereThatIsNotEnoughWholeGroupsAre) {
  const auto choice = ChoosePlan(Chain(64, 1000, 1), 20'000);
  ASSERT_TRUE(choice);
  EXPECT_TRUE(std::ranges::contains(choice->plan.segments, Retention::kNothing, &FitSegment::retention));
  EXPECT_LE(choice->added_seconds, 64) << "each is computed again once at most";
}

TEST(FitPlanner, ThePeakFallsNearTheLargestGroup) {
  const FitProblem problem = Chain(64, 1000, 1);
  const FitChoice least = SmallestPlan(problem);
  // Square roots of the number of groups: of what goes into pieces, and of what one holds.
  EXPECT_LT(least.peak, 10'000U);
  EXPECT_GT(least.peak, 1000U);
  EXPECT_FALSE(ChoosePlan(problem, least.peak - 1));
  EXPECT_TRUE(ChoosePlan(problem, least.peak));
}

RC_GTEST_PROP(FitPlanner, StaysWithinTheBoundAndIsNoSlowerWithMore, ()) {
  const FitProblem problem = AnyProblem();
  const FitChoice least = SmallestPlan(problem);
  const auto extra = *rc::gen::inRange<std::uint64_t>(0, 200'000);
  const auto more = *rc::gen::inRange<std::uint64_t>(0, 50'000);
  const auto tight = ChoosePlan(problem, least.peak + extra);
  const auto wide = ChoosePlan(problem, least.peak + extra + more);
  RC_ASSERT(tight && wide);
  RC_ASSERT(tight->peak <= least.peak + extra);
  RC_ASSERT(wide->added_seconds <= tight->added_seconds);
  RC_ASSERT(tight->added_seconds <= least.added_seconds);
  RC_ASSERT(!ChoosePlan(problem, least.peak - 1));
}

// Empty when nothing is.
std::string WrongWith(const FitPlan& plan, const FitProblem& problem) {
  std::size_t end = 0;
  for (const FitSegment& segment : plan.segments) {
    const auto& parts = segment.parts;
    if (segment.begin < end) return "it overlaps the one before";
    if (segment.end <= segment.begin || segment.end > problem.groups.back().end) return "it ends where it may not";
    if (segment.retention == Retention::kAll) return "there is nothing to do";
    if (segment.begin % 2 != 0 || segment.end % 2 != 0) return "it is cut within a group";
    if (!parts.empty() && (parts.front() != segment.begin || parts.back() >= segment.end)) return "parts are not of it";
    if (!std::ranges::is_sorted(parts)) return "parts are in no order";
    end = segment.end;
  }
  return "";
}

RC_GTEST_PROP(FitPlanner, SegmentsAreInOrderAndOfWholeGroups, ()) {
  const FitProblem problem = AnyProblem();
  const FitChoice least = SmallestPlan(problem);
  const auto extra = *rc::gen::inRange<std::uint64_t>(0, 100'000);
  const auto choice = ChoosePlan(problem, least.peak + extra);
  RC_ASSERT(choice.has_value());
  RC_ASSERT(WrongWith(choice->plan, problem) == "");
  RC_ASSERT(WrongWith(least.plan, problem) == "");
}

}  // namespace
}  // namespace tandem::training
