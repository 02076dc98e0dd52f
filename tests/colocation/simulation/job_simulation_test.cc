#include "colocation/simulation/job_simulation.h"

#include <algorithm>
#include <chrono>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "api/base/duration.h"

namespace tandem::simulation {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

JobMixResult Simulated(std::string_view policy, const JobMix& mix) {
  return SimulateJobs(mix, **MakeJobPolicy(policy));
}

// Takes so many seconds alone.
SimulatedJob Takes(std::uint64_t seconds, nanoseconds arrival = 0s) {
  return {.arrival = arrival, .need = {.persistent = 1, .ephemeral = 10}, .iterations = seconds, .iteration = 1s};
}

TEST(JobSimulation, FifoRunsOneJobAfterTheOther) {
  const auto result = Simulated("fifo", {.budget = 100, .jobs = {Takes(10), Takes(5), Takes(1, 1s)}});
  EXPECT_EQ(result.jobs[0].ended, 10s);
  EXPECT_EQ(result.jobs[1].started, 10s);
  EXPECT_EQ(result.jobs[1].ended, 15s);
  EXPECT_EQ(result.jobs[2].completion(), 15s);
  EXPECT_EQ(result.makespan(), 16s);
  EXPECT_EQ(result.mean_queueing(), 8s);
  EXPECT_EQ(result.mean_completion(), 13333333333ns);
  EXPECT_EQ(result.p95_completion(), 15s);
}

TEST(JobSimulation, SrtfPutsAShortJobBeforeALongOneAtItsBoundary) {
  const auto result = Simulated("srtf", {.budget = 100, .max_lanes = 1, .jobs = {Takes(10), Takes(2, 2500ms)}});
  EXPECT_EQ(result.jobs[1].started, 3s) << "when the iteration under way has ended";
  EXPECT_EQ(result.jobs[1].ended, 5s);
  EXPECT_EQ(result.jobs[0].ended, 12s);
}

TEST(JobSimulation, ALaneThatStandsStillGrowsAtOnce) {
  JobMix mix{.budget = 40, .jobs = {Takes(100), Takes(1000), Takes(5, 1s)}};
  mix.jobs[1].need.ephemeral = 12;
  mix.jobs[2].need.ephemeral = 20;
  const auto result = Simulated("srtf", mix);
  EXPECT_EQ(result.jobs[2].started, 1s) << "in the lane of the second, which has not begun";
  EXPECT_EQ(result.jobs[2].ended, 6s);
}

TEST(JobSimulation, SideBySideJobsShareTheDeviceAndUseWhatOneLeaves) {
  JobMix mix{.budget = 100, .jobs = {Takes(10), Takes(10)}};
  EXPECT_EQ(Simulated("pack", mix).makespan(), 20s) << "each wants all of it";
  for (SimulatedJob& job : mix.jobs) job.width = 0.5;
  EXPECT_EQ(Simulated("pack", mix).makespan(), 10s);
  EXPECT_EQ(Simulated("fifo", mix).makespan(), 20s);
}

TEST(JobSimulation, WhoDoesNotFitWaitsForMemory) {
  const auto result = Simulated("pack", {.budget = 15, .jobs = {Takes(10), Takes(10)}});
  EXPECT_EQ(result.jobs[1].admitted, 0s) << "in the same lane";
  EXPECT_EQ(result.most_bytes, 12U);
  const auto small = Simulated("pack", {.budget = 11, .jobs = {Takes(10), Takes(10)}});
  EXPECT_EQ(small.jobs[1].admitted, 10s);
  EXPECT_EQ(small.most_jobs, 1U);
}

TEST(JobSimulation, AJobForWhichTheDeviceHasNotTheMemoryKeepsNobodyWaiting) {
  JobMix mix{.budget = 100, .jobs = {Takes(10), Takes(10)}};
  mix.jobs[0].need.persistent = 101;
  const auto result = Simulated("fifo", mix);
  EXPECT_FALSE(result.jobs[0].done);
  EXPECT_EQ(result.jobs[1].ended, 10s);
}

TEST(JobSimulation, FairLetsEqualJobsThatComeTogetherEndTogether) {
  JobMix mix{.budget = 100, .max_lanes = 1};
  for (int i = 1; i <= 8; ++i) {
    SimulatedJob job = Takes(1);
    job.iteration = i * 100ms;
    job.iterations = static_cast<std::uint64_t>(60s / job.iteration);
    mix.jobs.push_back(job);
  }
  const auto result = Simulated("fair", mix);
  nanoseconds first = nanoseconds::max();
  nanoseconds last{0};
  for (const JobOutcome& job : result.jobs) {
    first = std::min(first, job.ended);
    last = std::max(last, job.ended);
  }
  EXPECT_GT(Seconds(first), 0.9 * Seconds(last)) << "however long their iterations are";
}

TEST(JobSimulation, FairMemoryGivesTheLargerJobLessTime) {
  JobMix mix{.budget = 1000, .max_lanes = 1, .jobs = {Takes(100), Takes(100)}};
  mix.jobs[0].need = {.persistent = 100, .ephemeral = 100};
  mix.jobs[1].need = {.persistent = 50, .ephemeral = 50};
  const auto result = Simulated("fair_memory", mix);
  // Two of three iterations are the smaller one's until it ends.
  EXPECT_NEAR(Seconds(result.jobs[1].ended), 150, 2);
  EXPECT_EQ(result.jobs[0].ended, 200s);
}

TEST(JobSimulation, TwentyJobsAtOnceAllGoOnWithinTheBudget) {
  JobMix mix{.budget = 100, .max_lanes = 2};
  for (std::uint64_t i = 1; i <= 20; ++i) {
    SimulatedJob job = Takes(60);
    job.need.ephemeral = i;
    mix.jobs.push_back(job);
  }
  const auto result = Simulated("fair", mix);
  EXPECT_EQ(result.most_jobs, 20U);
  EXPECT_LE(result.most_bytes, 100U);
  for (const JobOutcome& job : result.jobs) {
    EXPECT_LE(job.started, 20s);
    EXPECT_GE(job.ended, 59 * 20s) << "none is done much before the others";
  }
}

TEST(JobSimulation, NoJobAndNoTimeIsLostOrInvented) {
  const auto holds = rc::check("any mix under any policy", [] {
    JobMix mix{.budget = 100, .max_lanes = *rc::gen::inRange<std::size_t>(1, 5)};
    const int count = *rc::gen::inRange(1, 15);
    double work = 0;
    for (int i = 0; i < count; ++i) {
      SimulatedJob job = Takes(*rc::gen::inRange<std::uint64_t>(1, 20), *rc::gen::inRange(0, 60) * 1s);
      job.need = {.persistent = *rc::gen::inRange<std::uint64_t>(0, 30),
                  .ephemeral = *rc::gen::inRange<std::uint64_t>(0, 70)};
      job.iteration = *rc::gen::inRange(1, 3000) * 1ms;
      job.width = *rc::gen::inRange(1, 11) / 10.0;
      job.priority = *rc::gen::inRange(0, 3);
      work += static_cast<double>(job.iterations) * Seconds(job.iteration) * job.width;
      mix.jobs.push_back(job);
    }
    std::ranges::sort(mix.jobs, {}, &SimulatedJob::arrival);
    for (const std::string_view name : JobPolicyNames()) {
      const auto result = Simulated(name, mix);
      RC_ASSERT(result.most_bytes <= mix.budget);
      std::uint64_t iterations = 0;
      for (std::size_t i = 0; i < mix.jobs.size(); ++i) {
        const JobOutcome& job = result.jobs[i];
        RC_ASSERT(job.done);
        RC_ASSERT(job.arrival == mix.jobs[i].arrival);
        RC_ASSERT(job.admitted >= job.arrival);
        RC_ASSERT(job.started >= job.admitted);
        // Times are whole nanoseconds.
        const auto alone = static_cast<std::int64_t>(mix.jobs[i].iterations) * (mix.jobs[i].iteration - 1ns);
        RC_ASSERT(job.ended - job.started >= alone);
        iterations += mix.jobs[i].iterations;
      }
      RC_ASSERT(result.iterations == iterations);
      RC_ASSERT(Seconds(result.makespan()) >= 0.999 * work);
    }
  });
  EXPECT_TRUE(holds);
}

}  // namespace
}  // namespace tandem::simulation
