// What Salus's policies come to on jobs in the shape of its trace; docs/decisions/0017-lanes.md has the figures.
#include "colocation/simulation/salus_trace.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "api/base/duration.h"
#include "colocation/simulation/job_simulation.h"

namespace tandem::simulation {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

double Minutes(nanoseconds time) {
  return Seconds(time) / 60;
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// With lanes as Salus had them.
JobMixResult Simulated(const SalusTrace& trace, std::string_view policy) {
  JobMix mix = MakeSalusMix(trace);
  if (policy == "fifo" || policy == "srtf") mix.max_lanes = 1;
  return SimulateJobs(mix, **MakeJobPolicy(policy));
}

// Of so many orders of the same jobs.
constexpr std::uint64_t kSeeds = 25;

TEST(SalusTrace, HasTheShapeThatIsTold) {
  const SalusTrace trace;
  const JobMix mix = MakeSalusMix(trace);
  ASSERT_EQ(mix.jobs.size(), 100U);
  double seconds = 0;
  double logs = 0;
  for (const SimulatedJob& job : mix.jobs) {
    const double time = Seconds(job.iteration) * static_cast<double>(job.iterations);
    seconds += time;
    logs += std::log(time);
    EXPECT_LE(job.arrival, 39min);
    EXPECT_GE(job.need.ephemeral, trace.least_ephemeral);
    EXPECT_LE(job.need.ephemeral, trace.most_ephemeral);
    EXPECT_LE(job.need.persistent, 600'000'000U);
    EXPECT_GE(job.width, 0.42);
    EXPECT_LE(job.width, 1);
  }
  EXPECT_NEAR(seconds / 100, 182, 1);
  // Of a log-normal distribution the mean is so much more than the median; a little less, of a hundred of it.
  EXPECT_NEAR(std::log(seconds / 100) - logs / 100, 1.3 * 1.3 / 2, 0.06);
}

TEST(SalusTrace, IsTheSameForTheSameSeedAndAnotherOrderForAnother) {
  const auto arrivals = [](std::uint64_t seed) {
    std::vector<nanoseconds> times;
    for (const SimulatedJob& job : MakeSalusMix({.seed = seed}).jobs) times.push_back(job.arrival);
    return times;
  };
  EXPECT_EQ(arrivals(3), arrivals(3));
  EXPECT_NE(arrivals(3), arrivals(4));
}

// Published: 3.19 times, 53.4 min.
TEST(SalusTrace, WhereWeightsTakeNoMemorySrtfIsDoneThreeTimesAsSoonOnAverage) {
  std::vector<double> better;
  std::vector<double> mean;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const SalusTrace trace{.bytes_per_parameter = 0, .seed = seed};
    const auto fifo = Simulated(trace, "fifo");
    const auto srtf = Simulated(trace, "srtf");
    EXPECT_NEAR(Minutes(fifo.makespan()), 303.4, 1.5);
    EXPECT_NEAR(Minutes(srtf.makespan()), 303.4, 1.5);
    better.push_back(Minutes(fifo.mean_completion()) / Minutes(srtf.mean_completion()));
    mean.push_back(Minutes(srtf.mean_completion()));
  }
  EXPECT_GE(Median(better), 3.0);
  EXPECT_NEAR(Median(mean), 42.6, 1);
}

// With weights not all jobs fit at once, and who waits for memory is not put off for ever: both have their price.
TEST(SalusTrace, WhereWeightsTakeMemorySrtfIsStillMuchBetter) {
  std::vector<double> better;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const SalusTrace trace{.seed = seed};
    const auto srtf = Simulated(trace, "srtf");
    better.push_back(Minutes(Simulated(trace, "fifo").mean_completion()) / Minutes(srtf.mean_completion()));
    EXPECT_GE(better.back(), 1.75) << seed;
    EXPECT_LE(srtf.most_bytes, trace.budget);
  }
  EXPECT_GE(Median(better), 2.0);
}

// Published: 287.4 min where FIFO has 303.4.
TEST(SalusTrace, PackIsDoneWithAllBeforeFifoIs) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const SalusTrace trace{.seed = seed};
    EXPECT_LT(Simulated(trace, "pack").makespan(), Simulated(trace, "fifo").makespan()) << seed;
  }
}

// Published: 96.6 min, from which the trace's spread was taken.
TEST(SalusTrace, FairLiesBetweenFifoAndSrtf) {
  std::vector<double> mean;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const SalusTrace trace{.bytes_per_parameter = 0, .seed = seed};
    const auto fair = Simulated(trace, "fair");
    mean.push_back(Minutes(fair.mean_completion()));
    EXPECT_LT(fair.mean_completion(), Simulated(trace, "fifo").mean_completion());
    EXPECT_GT(fair.mean_completion(), Simulated(trace, "srtf").mean_completion());
  }
  EXPECT_NEAR(Median(mean), 96.6, 10);
}

}  // namespace
}  // namespace tandem::simulation
