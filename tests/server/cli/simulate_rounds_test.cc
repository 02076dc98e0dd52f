#include "server/cli/simulate_rounds.h"

#include <gtest/gtest.h>

namespace tandem::cli {
namespace {

using namespace std::chrono_literals;
using simulation::SimulationResult;

SimulationResult Round(std::uint64_t answered, std::chrono::nanoseconds p99, double rate) {
  SimulationResult result;
  result.models = {{.name = "m", .offered = answered, .answered = answered, .p99 = p99}};
  result.trainers = {{.name = "t", .iterations_per_second = rate, .held = {0s, 3s, 0s}}};
  result.time = 9s;
  result.used_by_requests = 2;
  return result;
}

TEST(SimulateRounds, AddsCountsAndTakesMedians) {
  const auto combined = CombineRounds({Round(10, 30ms, 5), Round(20, 900ms, 1), Round(30, 40ms, 4)});
  EXPECT_EQ(combined.models[0].offered, 60);
  EXPECT_EQ(combined.models[0].p99, 40ms) << "one bad round changes little";
  EXPECT_EQ(combined.trainers[0].iterations_per_second, 4);
  EXPECT_EQ(combined.trainers[0].held[1], 3s);
  EXPECT_EQ(combined.time, 9s);
  EXPECT_EQ(combined.used_by_requests, 2);
}

TEST(SimulateRounds, ARoundThatAnsweredNothingHasNoLatency) {
  EXPECT_EQ(CombineRounds({Round(0, 0ms, 1), Round(5, 20ms, 1), Round(0, 0ms, 1)}).models[0].p99, 20ms);
}

}  // namespace
}  // namespace tandem::cli
