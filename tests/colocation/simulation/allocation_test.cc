// Counts what a simulation allocates, in a program of its own.

#include <gtest/gtest.h>

#include "colocation/simulation/simulation.h"
#include "tests/fakes/counted_allocations.h"

namespace tandem::simulation {
namespace {

using namespace std::chrono_literals;

std::uint64_t AllocationsOf(const char* policy, std::chrono::seconds duration) {
  const Scenario scenario{
      .machine = {.width = 2, .limit = CpuLimit{.quota = 120ms, .period = 100ms}},
      .models = {{.name = "served", .rate = 50, .slo = 10s, .max_batch = 4, .steps = {{.time = 5ms, .width = 1.5}}}},
      .trainers = {{.name = "trained", .steps = {{.time = 5ms, .width = 2, .heavy = true}}}},
      .duration = duration};
  const auto made = MakeColocationPolicy(policy);
  const std::uint64_t before = fakes::allocations;
  const SimulationResult result = Simulate(scenario, **made);
  EXPECT_EQ(result.models[0].rejected, 0);
  return fakes::allocations - before;
}

TEST(SimulationAllocation, ALongerSimulationAllocatesNoMoreThanAShortOne) {
  for (const char* policy : {"tandem", "none", "op_gate", "time_slice"}) {
    // A line may have to grow once or twice more in a longer one.
    EXPECT_LE(AllocationsOf(policy, 1000s), AllocationsOf(policy, 10s) + 8) << policy;
  }
}

}  // namespace
}  // namespace tandem::simulation
