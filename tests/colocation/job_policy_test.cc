#include "colocation/job_policy.h"

#include <chrono>
#include <optional>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace tandem {
namespace {

using namespace std::chrono_literals;

std::unique_ptr<const JobPolicy> Policy(std::string_view name) {
  return MakeJobPolicy(name).value();
}

// A job that came as so many others had, in a lane.
JobView Job(std::uint64_t order, std::uint64_t lane) {
  return {.session = SessionId{order}, .lane = LaneId{lane}, .order = order};
}

// Who runs in the lanes 1, 2, …; 0: nobody.
std::vector<std::uint64_t> Runs(std::string_view policy, const std::vector<JobView>& jobs) {
  std::vector<std::uint64_t> runs;
  for (const JobTurn& turn : Policy(policy)->Decide({.jobs = jobs})) {
    EXPECT_EQ(turn.lane, LaneId{runs.size() + 1});
    runs.push_back(turn.session ? std::to_underlying(*turn.session) : 0);
  }
  return runs;
}

using Ids = std::vector<std::uint64_t>;

TEST(JobPolicy, IsChosenByName) {
  for (const std::string_view name : JobPolicyNames()) EXPECT_EQ(Policy(name)->name(), name);
  EXPECT_EQ(JobPolicyNames().front(), "fifo");
  const auto unknown = MakeJobPolicy("rr");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(unknown.error().message,
            "job policy 'rr' is not known; known are fifo, pack, srtf, fair, fair_memory, priority");
}

TEST(JobPolicy, FifoRunsOneJobAtATimeInTheOrderInWhichTheyCame) {
  EXPECT_EQ(Runs("fifo", {Job(7, 1), Job(3, 2), Job(5, 2)}), (Ids{0, 3}));
  EXPECT_EQ(Runs("fifo", {Job(7, 1), Job(5, 2)}), (Ids{0, 5}));
}

TEST(JobPolicy, PackRunsAJobInEveryLane) {
  EXPECT_EQ(Runs("pack", {Job(7, 1), Job(3, 2), Job(5, 2), Job(2, 3)}), (Ids{7, 3, 2}));
}

TEST(JobPolicy, SrtfRunsTheJobThatIsDoneSoonest) {
  JobView longer = Job(1, 1);
  longer.remaining = 10min;
  JobView shorter = Job(2, 2);
  shorter.remaining = 9min;
  EXPECT_EQ(Runs("srtf", {longer, shorter}), (Ids{0, 2}));
  shorter.remaining = 11min;
  EXPECT_EQ(Runs("srtf", {longer, shorter}), (Ids{1, 0}));
}

TEST(JobPolicy, SrtfTriesFirstWhatNobodyKnows) {
  JobView known = Job(1, 1);
  known.remaining = 1ns;
  EXPECT_EQ(Runs("srtf", {known, Job(2, 1)}), (Ids{2}));
}

TEST(JobPolicy, WhatTheFirstLeavesOfTheDeviceIsForTheNextWhoFits) {
  JobView first = Job(1, 1);
  first.remaining = 1min;
  first.width = 0.6;
  JobView wide = Job(2, 2);
  wide.remaining = 2min;
  wide.width = 0.5;
  JobView narrow = Job(3, 3);
  narrow.remaining = 3min;
  narrow.width = 0.4;
  EXPECT_EQ(Runs("srtf", {first, wide, narrow}), (Ids{1, 0, 3}));
  EXPECT_EQ(Runs("fifo", {first, wide, narrow}), (Ids{1, 0, 0})) << "which shares nothing";
}

TEST(JobPolicy, FairRunsTheJobThatHasHadLeastTime) {
  JobView first = Job(1, 1);
  first.had = {.time = 5s, .byte_time = 1e9};
  JobView second = Job(2, 1);
  second.had = {.time = 4s, .byte_time = 2e9};
  EXPECT_EQ(Runs("fair", {first, second}), (Ids{2}));
  EXPECT_EQ(Runs("fair_memory", {first, second}), (Ids{1})) << "with less memory";
  second.had = first.had;
  EXPECT_EQ(Runs("fair", {first, second}), (Ids{1})) << "of equals the one that came first";
}

TEST(JobPolicy, PriorityRunsTheMostImportantJobAndOfEqualsTheFirst) {
  JobView late = Job(9, 1);
  late.priority = 5;
  EXPECT_EQ(Runs("priority", {Job(1, 1), Job(2, 2), late}), (Ids{9, 0}));
  late.priority = -5;
  EXPECT_EQ(Runs("priority", {Job(1, 1), Job(2, 2), late}), (Ids{1, 0}));
}

TEST(JobPolicy, ForMemoryJobsWaitInTheSameOrder) {
  JobView job = Job(1, 1);
  job.remaining = 10min;
  JobView other = Job(2, 1);
  other.remaining = 9min;
  other.priority = 1;
  for (const char* name : {"srtf", "priority"}) {
    EXPECT_LT(Policy(name)->QueueRank(other), Policy(name)->QueueRank(job)) << name;
  }
  for (const char* name : {"fifo", "pack", "fair", "fair_memory"}) {
    EXPECT_EQ(Policy(name)->QueueRank(other), Policy(name)->QueueRank(job)) << name << ": as they came";
  }
}

TEST(JobPolicy, WhoDoesNotFitItsLaneYetDoesNotRun) {
  JobView waiting = Job(1, 1);
  waiting.ready = false;
  for (const std::string_view name : JobPolicyNames()) {
    EXPECT_EQ(Runs(name, {waiting, Job(2, 1)}), (Ids{2})) << name;
    EXPECT_EQ(Runs(name, {waiting}), (Ids{0})) << name << ": the lane stands still";
  }
}

TEST(JobPolicy, EveryLaneIsToldOnceAndNothingRunsThatCannot) {
  const auto holds = rc::check("any jobs under any policy", [] {
    std::vector<JobView> jobs;
    bool any_ready = false;
    const int count = *rc::gen::inRange(0, 12);
    for (int i = 0; i < count; ++i) {
      JobView job = Job(static_cast<std::uint64_t>(i) + 1, *rc::gen::inRange<std::uint64_t>(1, 5));
      job.priority = *rc::gen::inRange(-3, 4);
      if (*rc::gen::arbitrary<bool>()) job.remaining = std::chrono::seconds(*rc::gen::inRange(0, 5));
      job.had = {.time = std::chrono::seconds(*rc::gen::inRange(0, 5)),
                 .byte_time = static_cast<double>(*rc::gen::inRange(0, 5))};
      job.width = *rc::gen::inRange(1, 11) / 10.0;
      job.ready = *rc::gen::inRange(0, 4) > 0;
      any_ready |= job.ready;
      jobs.push_back(job);
    }
    for (const std::string_view name : JobPolicyNames()) {
      const auto turns = Policy(name)->Decide({.jobs = jobs});
      RC_ASSERT(turns == Policy(name)->Decide({.jobs = jobs}));
      std::size_t told = 0;
      bool any_runs = false;
      for (const JobTurn& turn : turns) {
        RC_ASSERT((told == 0 || turns[told - 1].lane < turn.lane));  // It would look at both sides.
        ++told;
        if (!turn.session) continue;
        any_runs = true;
        const JobView& job = jobs[std::to_underlying(*turn.session) - 1];
        RC_ASSERT(job.lane == turn.lane);
        RC_ASSERT(job.ready);
      }
      for (const JobView& job : jobs) RC_ASSERT(std::ranges::contains(turns, job.lane, &JobTurn::lane));
      RC_ASSERT(any_runs == any_ready);
    }
  });
  EXPECT_TRUE(holds);
}

}  // namespace
}  // namespace tandem
